/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what this kernel and this user can do, by trying it and never from a version number. */
#ifndef CORDON_SANDBOX_HOST_PROBE_H
#define CORDON_SANDBOX_HOST_PROBE_H

#include "base/error.h"

typedef enum cordon_probe_id {
	CORDON_PROBE_NAMESPACES,
	CORDON_PROBE_APPARMOR,
	CORDON_PROBE_LANDLOCK,
	CORDON_PROBE_SECCOMP,
	CORDON_PROBE_MOUNT_API,
	CORDON_PROBE_OPENAT2,
	CORDON_PROBE_NOTIFY,
	CORDON_PROBE_MEMORY,
	CORDON_PROBE_PIDS,
	CORDON_PROBE_CPUS,
	CORDON_PROBE_FUSE,
	CORDON_PROBE__MAX
} cordon_probe_id;

struct cordon_probe {
	const char *name;      /* "user namespaces" */
	const char *needed_by; /* what uses it */
	bool required;	       /* no run works without it */
	bool ok;
	char detail[160]; /* "ABI 7", "cgroup1", or the kernel's error */
	const char *fix;  /* a command or a sentence, or NULL */
};

void cordon_probe_all(struct cordon_probe ret[static CORDON_PROBE__MAX]);

#endif
