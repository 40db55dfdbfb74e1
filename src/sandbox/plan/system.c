/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a plan every run has: a read-only system, private /tmp, /run, /dev, /proc and home. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/path.h"
#include "sandbox/plan.h"

/* What programs need of /etc, and no more: each entry costs every start. Small files are copied when the run starts,
 * the rest is mounted read-only. Nothing here holds secrets: no shadow, no ssh or TLS keys, no tool configuration that
 * may carry tokens. */
static const char *const etc_copied[] = {
	"gai.conf",   "host.conf", "hosts",	  "localtime", "nsswitch.conf",
	"os-release", "protocols", "resolv.conf", "services",  "ssl/openssl.cnf",
};
static const char *const etc_mounted[] = {
	"alternatives", "fonts", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk",
	"ld.so.cache",	"pki",	 "ssl/certs",
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
			if (!add(plan, CORDON_STEP_LINK, system_dirs[i], cordon_plan_printf(plan, "%s", target), 0))
				return cordon_fail_errno(err, -ENOMEM, "plan");
		} else if (lstat(system_dirs[i], &st) == 0 && S_ISDIR(st.st_mode)) {
			r = bind_system(plan, system_dirs[i], system_dirs[i], err);
		}
	}
	return r;
}

static int copy_etc(struct cordon_plan *plan, int etc, const char *name)
{
	autobuf struct cordon_buf text = CORDON_BUF(ETC_FILE_MAX);
	char path[CORDON_PATH_MAX];
	struct cordon_step *step;
	char *copy;

	/* Links are followed: /etc belongs to the administrator, and resolv.conf usually is one. */
	if (cordon_read_file(etc, name, 0, &text, NULL) < 0)
		return 0;
	copy = cordon_plan_alloc(plan, text.len + 1);
	if (!copy || cordon_path_join("/etc", name, path, sizeof(path)) < 0)
		return -ENOMEM;
	memcpy(copy, text.data ? text.data : "", text.len);
	step = add(plan, CORDON_STEP_FILE, path, copy, 0444);
	if (!step)
		return -ENOMEM;
	step->text_len = text.len;
	return 0;
}

static int plan_etc(struct cordon_plan *plan, struct cordon_error *err)
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
		     cordon_plan_printf(
			     plan,
			     "%s%s:x:%u:%u::%s:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			     plan->uid ? "root:x:0:0:root:/root:/bin/sh\n" : "", plan->user, plan->uid, plan->gid,
			     plan->home),
		     0444);
	group = add(plan, CORDON_STEP_FILE, "/etc/group",
		    cordon_plan_printf(plan, "%s%s:x:%u:\nnogroup:x:65534:\n", plan->gid ? "root:x:0:\n" : "",
				       plan->user, plan->gid),
		    0444);
	if (!passwd || !passwd->text || !group || !group->text)
		return cordon_fail_errno(err, -ENOMEM, "plan");
	passwd->text_len = strlen(passwd->text);
	group->text_len = strlen(group->text);
	if (etc < 0)
		return 0;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(etc_copied); i++)
		if (copy_etc(plan, etc, etc_copied[i]) < 0)
			return cordon_fail_errno(err, -ENOMEM, "plan");
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(etc_mounted); i++) {
		char path[CORDON_PATH_MAX];
		struct stat st;

		if (fstatat(etc, etc_mounted[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode) ||
		    cordon_path_join("/etc", etc_mounted[i], path, sizeof(path)) < 0)
			continue;
		/* The rule on /etc covers it. */
		r = cordon_plan_bind(plan, path, path, CORDON_STEP_READ_ONLY | CORDON_STEP_SYSTEM, CORDON_RIGHT_NONE,
				     err);
	}
	return r;
}

static int plan_dev(struct cordon_plan *plan, struct cordon_error *err)
{
	int r = 0;

	if (!add(plan, CORDON_STEP_DIR, "/dev", NULL, 0755) || !add(plan, CORDON_STEP_DIR, "/dev/pts", NULL, 0755) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/ptmx", "pts/ptmx", 0) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/fd", "/proc/self/fd", 0) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/stdin", "/proc/self/fd/0", 0) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/stdout", "/proc/self/fd/1", 0) ||
	    !add(plan, CORDON_STEP_LINK, "/dev/stderr", "/proc/self/fd/2", 0))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(devices); i++) {
		char path[32];

		snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		/* A device can be written on a read-only mount; its mode and times, which root owns, can't be changed. */
		r = cordon_plan_bind(plan, path, path, CORDON_STEP_IS_DEVICE | CORDON_STEP_READ_ONLY,
				     CORDON_RIGHT_DEVICE, err);
	}
	return r;
}

/* A directory of ours that the agent may write. */
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

static int plan_home(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err)
{
	struct cordon_root slash = { .fd = -1, .path = "/" };
	struct cordon_resolved found;
	char source[CORDON_PATH_MAX];
	int r;

	if (!spec->home)
		return plan_private(plan, plan->home, 0700, err);
	if (spec->home[0] != '/')
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--home %s: the path must be absolute", spec->home);
	cordon_resolve(&slash, spec->home, &found);
	if (found.place != CORDON_PLACE_INSIDE || !found.exists)
		return cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "--home %s: no such directory", spec->home);
	if (cordon_path_join("/", found.path, source, sizeof(source)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "--home %s", spec->home);
	if (spec->home_path &&
	    (cordon_path_within(spec->home_path, source) || cordon_path_within(source, spec->home_path)))
		return cordon_fail(err, -EACCES, CORDON_KIND_POLICY_DENIED, "--home %s holds cordon's own records (%s)",
				   source, spec->home_path);
	r = cordon_plan_apart(plan, "--home", source, err);
	return r < 0 ? r : cordon_plan_bind(plan, source, plan->home, 0, CORDON_RIGHT_WRITE, err);
}

/*
 * Permissive mode: what the user could reach, the agent can reach, at the same paths. The system stays read-only, /run
 * with its sockets stays private, and our own home and temporary directory lie there.
 */
static int plan_host(struct cordon_plan *plan, struct cordon_error *err)
{
	static const char *const own[] = { "bin",    "dev",  "etc", "lib",  "lib32", "lib64",
					   "libx32", "proc", "run", "sbin", "sys",   "usr" };
	DIR *dir = opendir("/");
	int r = bind_system(plan, "/etc", "/etc", err);

	if (!dir)
		return cordon_fail_errno(err, -errno, "cannot list /");
	for (struct dirent *entry; r == 0 && (entry = readdir(dir));) {
		char path[CORDON_PATH_MAX], target[CORDON_PATH_MAX];
		bool skip = entry->d_name[0] == '.' && (!entry->d_name[1] || cordon_streq(entry->d_name, ".."));
		struct stat st;
		ssize_t n;

		for (size_t i = 0; i < CORDON_ARRAY_SIZE(own); i++)
			skip |= cordon_streq(entry->d_name, own[i]);
		if (skip || cordon_path_join("/", entry->d_name, path, sizeof(path)) < 0 || lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			r = cordon_plan_bind(plan, path, path, 0, CORDON_RIGHT_WRITE, err);
		} else if (S_ISLNK(st.st_mode) && (n = readlink(path, target, sizeof(target) - 1)) > 0) {
			target[n] = '\0';
			if (!add(plan, CORDON_STEP_LINK, path, cordon_plan_printf(plan, "%s", target), 0))
				r = cordon_fail_errno(err, -ENOMEM, "plan");
		}
	}
	closedir(dir);
	if (r == 0 && access("/sys", F_OK) == 0)
		r = bind_system(plan, "/sys", "/sys", err);
	if (r == 0 && (!add(plan, CORDON_STEP_DIR, CORDON_PERMISSIVE_TMP, NULL, 01777)))
		r = cordon_fail_errno(err, -ENOMEM, "plan");
	return r;
}

int cordon_plan_system(struct cordon_plan *plan, const struct cordon_run_spec *spec, struct cordon_error *err)
{
	bool permissive = plan->mode == CORDON_MODE_PERMISSIVE;
	struct cordon_step *proc;
	int r;

	if ((r = plan_programs(plan, err)) < 0)
		return r;
	if (!add(plan, CORDON_STEP_DIR, "/proc", NULL, 0755) || !add(plan, CORDON_STEP_FREEZE, "/", NULL, 0))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	if (!permissive && (r = plan_etc(plan, err)) < 0)
		return r;
	if (!permissive &&
	    (!add(plan, CORDON_STEP_DIR, "/var", NULL, 0755) || !add(plan, CORDON_STEP_LINK, "/var/tmp", "/tmp", 0) ||
	     !add(plan, CORDON_STEP_LINK, "/var/run", "/run", 0)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	if ((r = plan_dev(plan, err)) < 0)
		return r;
	if (!add(plan, CORDON_STEP_DEVPTS, "/dev/pts", NULL, 0) ||
	    !(proc = add(plan, CORDON_STEP_PROC, "/proc", NULL, 0)))
		return cordon_fail_errno(err, -ENOMEM, "plan");
	plan->steps[plan->n_steps - 2].right = CORDON_RIGHT_DEVICE;
	proc->right = CORDON_RIGHT_READ;
	if ((r = plan_private(plan, "/dev/shm", 01777, err)) < 0 || (r = plan_private(plan, "/run", 0755, err)) < 0)
		return r;
	r = permissive ? plan_host(plan, err) : plan_private(plan, "/tmp", 01777, err);
	return r < 0 ? r : plan_home(plan, spec, err);
}
