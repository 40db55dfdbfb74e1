/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what this kernel and this user can do, by trying it. */
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "base/setting.h"
#include "base/sys.h"
#include "sandbox/host/launch.h"
#include "sandbox/host/nested.h"
#include "sandbox/host/probe.h"
#include "sandbox/inside/landlock.h"
#include "sandbox/plan/layers.h"

static void set_result(struct cordon_probe *p, int code)
{
	p->ok = code >= 0;
	snprintf(p->detail, sizeof(p->detail), "%s", code >= 0 ? "works" : strerror(-code));
}

static bool readable(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	return true;
}

/* Whether AppArmor keeps user namespaces from programs without a profile, as on Ubuntu. */
static bool apparmor_restricts(void)
{
	char text[8];

	return readable("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", text, sizeof(text)) && text[0] == '1';
}

/* Which of the usual settings prevents namespaces, and the line that changes it. */
static const char *namespace_fix(void)
{
	static const char script[] = CORDON_LIBEXEC "/apparmor-profile";
	static char fix[256];
	char text[32];

	if (cordon_nested())
		return "run cordon outside of this sandbox";
	if (apparmor_restricts()) {
		if (access(script, X_OK) < 0)
			return "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (or make install, which brings an AppArmor profile)";
		snprintf(fix, sizeof(fix), "sudo %s install", script);
		return fix;
	}
	if (readable("/proc/sys/kernel/unprivileged_userns_clone", text, sizeof(text)) && text[0] == '0')
		return "sysctl -w kernel.unprivileged_userns_clone=1";
	if (readable("/proc/sys/user/max_user_namespaces", text, sizeof(text)) && text[0] == '0')
		return "sysctl -w user.max_user_namespaces=15000";
	snprintf(fix, sizeof(fix), "the container or service this runs in must allow user namespaces; until then use %s",
		 cordon_setting_name(CORDON_SETTING_BEST_EFFORT));
	return fix;
}

/* The profile that AppArmor gave this process. Root needs none. */
static void probe_apparmor(struct cordon_probe *p, bool namespaces)
{
	char label[96];

	if (!apparmor_restricts()) {
		p->ok = true;
		snprintf(p->detail, sizeof(p->detail), "keeps user namespaces from no program");
		return;
	}
	if (!readable("/proc/self/attr/apparmor/current", label, sizeof(label)))
		snprintf(label, sizeof(label), "unconfined");
	label[strcspn(label, " \n")] = '\0';
	p->ok = namespaces;
	if (strcmp(label, "unconfined") == 0)
		snprintf(p->detail, sizeof(p->detail), "%s",
			 namespaces ? "keeps user namespaces from other users only" : "no profile for this executable");
	else
		snprintf(p->detail, sizeof(p->detail), "profile %s", label);
}

static void probe_landlock(struct cordon_probe *p)
{
	unsigned int abi = cordon_landlock_abi();

	p->ok = abi >= CORDON_LANDLOCK_ABI_REQUIRED;
	snprintf(p->detail, sizeof(p->detail), abi ? "ABI %u" : "not there", abi);
}

static void probe_seccomp(struct cordon_probe *p)
{
	struct seccomp_notif_sizes sizes;

	set_result(p, syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0 ? -errno : 0);
}

static void probe_mount_api(struct cordon_probe *p)
{
	int fd = open_tree(AT_FDCWD, "/", OPEN_TREE_CLOEXEC);
	int code = fd < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	/* The other calls need a namespace to succeed. But the error for a bad descriptor shows whether the kernel
	 * knows them. */
	if (code == 0 && move_mount(-1, "", -1, "", MOVE_MOUNT_F_EMPTY_PATH) < 0 && errno == ENOSYS)
		code = -ENOSYS;
	if (code == 0 && mount_setattr(-1, "", AT_EMPTY_PATH, NULL, 0) < 0 && errno == ENOSYS)
		code = -ENOSYS;
	set_result(p, code);
}

static void probe_openat2(struct cordon_probe *p)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	int fd = cordon_sys_openat2(AT_FDCWD, ".", &how, sizeof(how));

	set_result(p, fd < 0 ? -errno : 0);
	if (fd >= 0)
		close(fd);
}

static void probe_notify(struct cordon_probe *p)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	set_result(p, fd < 0 || fcntl(fd, F_NOTIFY, (long)DN_CREATE) < 0 ? -errno : 0);
	if (fd >= 0)
		close(fd); /* this ends the notification too */
}

static void probe_limits(struct cordon_probe ret[static CORDON_PROBE__MAX])
{
	static const cordon_probe_id ids[] = {
		[CORDON_LIMIT_MEMORY] = CORDON_PROBE_MEMORY, [CORDON_LIMIT_PIDS] = CORDON_PROBE_PIDS, [CORDON_LIMIT_CPUS] = CORDON_PROBE_CPUS
	};
	struct cordon_limits limits = {
		.memory_bytes = 64 << 20, .pids = 16, .cpu_millis = 1000, .user_namespace = true, .best_effort = true
	};
	struct cordon_limits_state state = { 0 };
	struct cordon_error err = { 0 };
	char id[CORDON_UUID_SIZE];
	int r = cordon_uuid_new(id);

	if (r == 0)
		r = cordon_limits_prepare(&limits, id, &state, &err);
	for (size_t i = 0; i < CORDON_LIMIT__MAX; i++) {
		struct cordon_probe *p = &ret[ids[i]];
		const char *mechanism = r == 0 ? cordon_limits_mechanism(&state, (enum cordon_limit)i) : NULL;

		/* Every mechanism limits the whole run. */
		p->ok = mechanism != NULL;
		snprintf(p->detail, sizeof(p->detail), "%s%s",
			 mechanism ? mechanism
			 : r < 0   ? strerror(-r)
				   : "nothing holds it",
			 mechanism && cordon_streq(mechanism, "watcher")
				 ? " (looks many times a second; a cgroup is exact)"
				 : "");
	}
	if (r == 0) {
		cordon_limits_remove(&state);
		cordon_limits_done(&state);
	}
}

static void probe_fuse(struct cordon_probe *p)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	set_result(p, fd < 0 ? -errno : 0);
	p->fix = fd < 0 && errno == EACCES ? "chmod 0666 /dev/fuse, as distributions do (or a udev rule)"
					   : "modprobe fuse (in a container: have it given the device /dev/fuse)";
	if (fd >= 0)
		close(fd);
}

void cordon_probe_all(struct cordon_probe ret[static CORDON_PROBE__MAX])
{
	static const char cgroup_fix[] = "delegate a cgroup: systemd-run --user --scope -p Delegate=yes cordon ...";
	static const struct cordon_probe known[] = {
		[CORDON_PROBE_NAMESPACES] = { .name = "namespaces", .needed_by = "every run", .required = true },
		[CORDON_PROBE_APPARMOR] = { .name = "AppArmor", .needed_by = "namespaces", .required = false },
		[CORDON_PROBE_LANDLOCK] = { .name = "Landlock",
					    .needed_by = "every run",
					    .required = true,
					    .fix = "Linux 5.19 or newer with landlock in the lsm= list" },
		[CORDON_PROBE_SECCOMP] = { .name = "seccomp",
					   .needed_by = "every run; its listener the hand",
					   .required = true,
					   .fix = "a kernel with CONFIG_SECCOMP_FILTER" },
		[CORDON_PROBE_MOUNT_API] = { .name = "mounts by descriptor",
					     .needed_by = "every run",
					     .required = true,
					     .fix = "Linux 5.12 or newer" },
		[CORDON_PROBE_OPENAT2] = { .name = "openat2",
					   .needed_by = "every run (a slower walk does without)",
					   .required = false,
					   .fix = "allow openat2 in the service's system call filter" },
		[CORDON_PROBE_NOTIFY] = { .name = "directory notification",
					  .needed_by = "protected paths (polling does without)",
					  .required = false,
					  .fix = "sysctl -w fs.dir-notify-enable=1" },
		[CORDON_PROBE_MEMORY] = { .name = "memory limit", .required = false, .fix = cgroup_fix },
		[CORDON_PROBE_PIDS] = { .name = "process limit", .required = false, .fix = cgroup_fix },
		[CORDON_PROBE_CPUS] = { .name = "CPU limit", .required = false, .fix = cgroup_fix },
		[CORDON_PROBE_FUSE] = { .name = "FUSE",
					.needed_by = "patterns that judge names (src/**/*.ts)",
					.required = false },
	};

	memcpy(ret, known, sizeof(known));
	ret[CORDON_PROBE_MEMORY].needed_by = cordon_setting_name(CORDON_SETTING_MEMORY);
	ret[CORDON_PROBE_PIDS].needed_by = cordon_setting_name(CORDON_SETTING_PIDS);
	ret[CORDON_PROBE_CPUS].needed_by = cordon_setting_name(CORDON_SETTING_CPUS);
	set_result(&ret[CORDON_PROBE_NAMESPACES], cordon_namespaces_probe());
	if (!ret[CORDON_PROBE_NAMESPACES].ok)
		ret[CORDON_PROBE_NAMESPACES].fix = namespace_fix();
	probe_apparmor(&ret[CORDON_PROBE_APPARMOR], ret[CORDON_PROBE_NAMESPACES].ok);
	ret[CORDON_PROBE_APPARMOR].fix = ret[CORDON_PROBE_NAMESPACES].fix;
	probe_landlock(&ret[CORDON_PROBE_LANDLOCK]);
	probe_seccomp(&ret[CORDON_PROBE_SECCOMP]);
	probe_mount_api(&ret[CORDON_PROBE_MOUNT_API]);
	probe_openat2(&ret[CORDON_PROBE_OPENAT2]);
	probe_notify(&ret[CORDON_PROBE_NOTIFY]);
	probe_limits(ret);
	probe_fuse(&ret[CORDON_PROBE_FUSE]);
}
