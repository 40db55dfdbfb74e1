/* SPDX-License-Identifier: Apache-2.0 */
/* What this kernel and this user can do, found out by doing it, never from a version number. */
#ifndef CORDON_SANDBOX_PROBE_H
#define CORDON_SANDBOX_PROBE_H

#include "base/error.h"

typedef enum cordon_probe_id {
	CORDON_PROBE_NAMESPACES,
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
	const char *needed_by; /* which front ends */
	bool required;	       /* no run without it */
	bool ok;
	char detail[160]; /* "ABI 7", "cgroup1", or what the kernel said */
	const char *fix;  /* a command or a sentence, or NULL */
};

void cordon_probe_all(struct cordon_probe ret[static CORDON_PROBE__MAX]);

#endif
