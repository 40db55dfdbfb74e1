/* SPDX-License-Identifier: Apache-2.0 */
/* Plans what every run has: a read-only system, and a private /tmp, /run, /dev, /proc and home. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/path.h"
#include "base/setting.h"
#include "sandbox/plan/plan.h"

/*
 * The parts of /etc that programs need. The lists are short because each entry costs time at every start. Small files
 * are copied when the run starts, the rest is mounted read-only. Nothing here holds secrets: no shadow, no ssh or TLS
 * keys, no tool configuration that may hold tokens.
 *
 * Copied: how names of hosts, services and protocols are resolved, the time zone, the system's name, OpenSSL's
 * defaults. Mounted: which program a name of /usr/bin stands for, fonts, the settings of Java (they lie in /etc on
 * Debian, and Java does not start without them), the linker's cache, and the certificates that are extracted for
 * everybody; the directories around those hold private keys. sandbox/plan/certs.c makes the links to the certificates.
 */
static const char *const etc_copied[] = {
	"gai.conf",  "host.conf",   "hosts",	"localtime",	   "nsswitch.conf",	  "os-release",
	"protocols", "resolv.conf", "services", "ssl/openssl.cnf", "pki/tls/openssl.cnf",
};
static const char *const etc_mounted[] = {
	"alternatives",	   "fonts",	  "java-11-openjdk",	    "java-17-openjdk",
	"java-21-openjdk", "ld.so.cache", "pki/ca-trust/extracted", "pki/tls/certs/ca-bundle.crt",
	"ssl/certs",
};
/* Files in these directories that only root may read. */
static const char *const etc_masked[] = {
	"java-11-openjdk/management/jmxremote.password",
	"java-17-openjdk/management/jmxremote.password",
	"java-21-openjdk/management/jmxremote.password",
};
#define ETC_FILE_MAX ((size_t)64 << 10)

static const char *const system_dirs[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };
static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

static struct cordon_step *add(struct cordon_plan *plan, cordon_step_kind kind, const char *path, const char *text,
			       mode_t mode)
{
	struct cordon_step *step = cordon_plan_step(plan, kind, path);

	if (step) {
		step->text = text;
		step->mode = mode;
	}
	return step;
}

static int bind_system(struct cordon_plan *plan, const char *source, const char *path, struct cordon_error *err)
{
	return cordon_plan_bind(plan, source, path, CORDON_STEP_READ_ONLY | CORDON_STEP_SYSTEM, CORDON_RIGHT_READ, err);
}

/* /usr, and /bin, /lib, ... as the host has them: links into /usr, or directories of their own. */
static int plan_programs(struct cordon_plan *plan, struct cordon_error *err)
{
	int r = bind_system(plan, "/usr", "/usr", err);

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(system_dirs); i++) {
		char target[CORDON_PATH_MAX];
		ssize_t n = readlink(system_dirs[i], target, sizeof(target) - 1);
		struct stat st;

		if (n > 0) {
			target[n] = '\0';
			if (!add(plan, CORDON_STEP_LINK, system_dirs[i], cordon_arena_printf(plan->arena, "%s", target),
				 0))
				return cordon_fail_errno(err, -ENOMEM, "plan");
		} else if (lstat(system_dirs[i], &st) == 0 && S_ISDIR(st.st_mode)) {
			r = bind_system(plan, system_dirs[i], system_dirs[i], err);
		}
	}
	return r;
}

/* Reads a file of /etc that everybody may read; the agent gets no other, also when root starts it. */
static bool read_etc(int etc, const char *name, struct cordon_buf *text)
{
	/* Links are followed: /etc belongs to the administrator, and resolv.conf usually is one. */
	autofd int fd = openat(etc, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH) &&
	       cordon_read_regular(fd, &st, name, text, NULL) == 0;
}

static int copy_etc(struct cordon_plan *plan, int etc, const char *name)
{
	autobuf struct cordon_buf text = CORDON_BUF(ETC_FILE_MAX);
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	bool there = read_etc(etc, name, &text);
	struct cordon_step *step;
	char *copy;

	if (!there)
		cordon_buf_done(&text);
	if (cordon_plan_host_names(plan, name, &text) < 0)
		return -ENOMEM;
	if (!there && !text.len)
		return 0;
	copy = cordon_arena_alloc(plan->arena, text.len + 1);
	if (!copy || cordon_path_join("/etc", name, path, sizeof(path)) < 0 ||
	    cordon_plan_parents(plan, path, NULL, NULL) < 0)
		return -ENOMEM;
	memcpy(copy, text.data ? text.data : "", text.len);
	step = add(plan, CORDON_STEP_FILE, path, copy, 0444);
	if (!step)
		return -ENOMEM;
	step->text_len = text.len;
	return 0;
}

/* Mounts a file or directory of /etc that everybody may read. It needs no Landlock rule of its own: the rule on /etc
 * covers it. One that the administrator removes while we look is as good as one that was never there. */
static int mount_etc(struct cordon_plan *plan, int etc, const char *name, struct cordon_error *err)
{
	CORDON_UNCLEARED char path[CORDON_PATH_MAX];
	struct stat st;
	int r;

	if (fstatat(etc, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode) || !(st.st_mode & S_IROTH) ||
	    cordon_path_join("/etc", name, path, sizeof(path)) < 0)
		return 0;
	r = cordon_plan_bind(plan, path, path, CORDON_STEP_READ_ONLY | CORDON_STEP_SYSTEM | CORDON_STEP_IN_ETC,
			     CORDON_RIGHT_NONE, err);
	if (r != -ENOENT)
		return r;
	*err = (struct cordon_error){ 0 };
	return 0;
}

static int mask_etc(struct cordon_plan *plan, int etc, const char *name, struct cordon_error *err)
{
	char path[CORDON_PATH_MAX];
	struct cordon_step *step;

	if (faccessat(etc, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
	    cordon_path_join("/etc", name, path, sizeof(path)) < 0)
		return 0;
	step = add(plan, CORDON_STEP_MASK, path, NULL, 0);
	if (!step)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->flags = CORDON_STEP_IF_THERE;
	return 0;
}

static int plan_etc(struct cordon_plan *plan, const struct cordon_policy *policy, struct cordon_error *err)
{
	autofd int etc = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct cordon_step *passwd, *group;
	struct cordon_step *dir = add(plan, CORDON_STEP_DIR, "/etc", NULL, 0755);
	int r = 0;

	if (!dir)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	dir->right = CORDON_RIGHT_READ;
	if (!add(plan, CORDON_STEP_DIR, "/etc/ssl", NULL, 0755))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	passwd = add(plan, CORDON_STEP_FILE, "/etc/passwd",
		     cordon_arena_printf(plan->arena,
					 "%s%s:x:%u:%u::%s:%s\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
					 plan->uid ? "root:x:0:0:root:/root:/bin/sh\n" : "", plan->user, plan->uid,
					 plan->gid, plan->home, plan->shell),
		     0444);
	group = add(plan, CORDON_STEP_FILE, "/etc/group",
		    cordon_arena_printf(plan->arena, "%s%s:x:%u:\nnogroup:x:65534:\n", plan->gid ? "root:x:0:\n" : "",
					plan->user, plan->gid),
		    0444);
	if (!passwd || !passwd->text || !group || !group->text)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	passwd->text_len = strlen(passwd->text);
	group->text_len = strlen(group->text);
	r = cordon_plan_git_user(plan, policy, err);
	if (r < 0 || etc < 0)
		return r;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(etc_copied); i++)
		if (copy_etc(plan, etc, etc_copied[i]) < 0)
			return cordon_fail_errno(err, -ENOMEM, "plan");
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(etc_mounted); i++)
		r = mount_etc(plan, etc, etc_mounted[i], err);
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(etc_masked); i++)
		r = mask_etc(plan, etc, etc_masked[i], err);
	return r < 0 ? r : cordon_plan_certificates(plan, etc, err);
}

static int plan_dev(struct cordon_plan *plan, struct cordon_error *err)
{
	int r = 0;

	if (!add(plan, CORDON_STEP_DIR, "/dev", NULL, 0755) || !add(plan, CORDON_STEP_DIR, "/dev/pts", NULL, 0755) ||
	    !add(plan, CORDON_STEP_DIR, "/dev/mqueue", NULL, 0755) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/ptmx", "pts/ptmx", 0) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/fd", "/proc/self/fd", 0) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/stdin", "/proc/self/fd/0", 0) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/stdout", "/proc/self/fd/1", 0) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/stderr", "/proc/self/fd/2", 0))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(devices); i++) {
		char path[32];

		snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		/* The agent can write to a device on a read-only mount, but root can't change the device's mode and
		 * times there. */
		r = cordon_plan_bind(plan, path, path, CORDON_STEP_IS_DEVICE | CORDON_STEP_READ_ONLY,
				     CORDON_RIGHT_DEVICE, err);
	}
	return r;
}

/* Plans a directory of ours that the agent may write. */
static int plan_private(struct cordon_plan *plan, const char *path, mode_t mode, struct cordon_error *err)
{
	struct cordon_step *step;
	int r = cordon_plan_parents(plan, path, NULL, err);

	if (r < 0)
		return r;
	if (!add(plan, CORDON_STEP_DIR, path, NULL, mode) || !(step = add(plan, CORDON_STEP_PRIVATE, path, NULL, mode)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	step->right = CORDON_RIGHT_WRITE;
	return 0;
}

/* /var/tmp is a link to /tmp, unless the root lies in it: then it is a private directory that contains the root. */
static int plan_var(struct cordon_plan *plan, struct cordon_error *err)
{
	if (!add(plan, CORDON_STEP_DIR, "/var", NULL, 0755) || !add(plan, CORDON_STEP_LINK, "/var/run", "/run", 0))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	if (cordon_path_within(plan->at, "/var/tmp"))
		return plan_private(plan, "/var/tmp", 01777, err);
	return add(plan, CORDON_STEP_LINK, "/var/tmp", "/tmp", 0) ? 0 : cordon_fail_errno(err, -ENOMEM, "plan");
}

/* Makes the temporary directory in the private /run, because the root, a share or a home may lie in /tmp. */
static int plan_temp_dir(struct cordon_plan *plan, struct cordon_error *err)
{
	if (cordon_path_within(plan->at, plan->tmp)) {
		cordon_fail(err, -EBUSY, CORDON_KIND_POLICY_DENIED,
			    "%s can't be a workspace: the run's temporary directory is %s", plan->at, plan->tmp);
		cordon_error_hint(err, "show the root elsewhere with %s", cordon_setting_name(CORDON_SETTING_AT));
		return -EBUSY;
	}
	return add(plan, CORDON_STEP_DIR, plan->tmp, NULL, 0700) ? 0 : cordon_fail_errno(err, -ENOMEM, "plan");
}

int cordon_plan_system(struct cordon_plan *plan, const struct cordon_plan_spec *spec, struct cordon_error *err)
{
	struct cordon_step *pts, *queues, *proc;
	int r;

	if ((r = plan_programs(plan, err)) < 0)
		return r;
	if (!add(plan, CORDON_STEP_DIR, "/proc", NULL, 0755) || !add(plan, CORDON_STEP_FREEZE, "/", NULL, 0))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	if ((r = plan_etc(plan, spec->run->policy, err)) < 0)
		return r;
	if (!spec->run->learns && (r = plan_var(plan, err)) < 0)
		return r;
	if ((r = plan_dev(plan, err)) < 0)
		return r;
	if ((pts = add(plan, CORDON_STEP_DEVPTS, "/dev/pts", NULL, 0)))
		pts->right = CORDON_RIGHT_DEVICE;
	/* mq_open() needs no mount, but Landlock asks for a rule on the file system of the queues. */
	if ((queues = add(plan, CORDON_STEP_MQUEUE, "/dev/mqueue", NULL, 0)))
		queues->right = CORDON_RIGHT_WRITE;
	if ((proc = add(plan, CORDON_STEP_PROC, "/proc", NULL, 0)))
		proc->right = CORDON_RIGHT_READ;
	if (!pts || !queues || !proc)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	if ((r = plan_private(plan, "/dev/shm", 01777, err)) < 0 || (r = plan_private(plan, "/run", 0755, err)) < 0 ||
	    (r = plan_temp_dir(plan, err)) < 0 || (r = plan_private(plan, "/tmp", 01777, err)) < 0)
		return r;
	if (spec->run->learns && (r = cordon_plan_learn(plan, spec, err)) < 0)
		return r;
	r = plan->home_shown ? 1 : cordon_plan_home(plan, spec, err);
	return r != 0 ? (r < 0 ? r : 0) : plan_private(plan, plan->home, 0700, err);
}
