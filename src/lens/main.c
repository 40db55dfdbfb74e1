/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of the process cordon-lens: it takes descriptors from the supervisor, gives up what it does not
 * need, and serves requests until the view ends. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/io.h"
#include "base/sys.h"
#include "lens/lens.h"
#include "policy/handover.h"
#include "sandbox/host/metrics.h"
#include "sandbox/inside/landlock.h"

struct arguments {
	int root_fd, policy_fd, fuse_fd, status_fd, refusals_fd, shown_fd, meter_fd;
	pid_t parent;
};

/* Since FUSE 7.43 the kernel ends the connection when a request is not answered within this many seconds. The
 * headers that we build with may be older, so the bit and its place stand here. */
#define INIT_REQUEST_TIMEOUT (1u << (42 - 32)) /* in flags2 */
#define INIT_REQUEST_TIMEOUT_AT 40	       /* in struct fuse_init_out: a 16-bit number */
#define REQUEST_TIMEOUT 300

static struct lens lens = { .lock = PTHREAD_MUTEX_INITIALIZER,
			    .root_fd = -1,
			    .fanotify_fd = -1,
			    .wake_fd = -1,
			    .invalidator_fd = -1,
			    .content_fd = -1,
			    .refusals_fd = -1,
			    .delayed_end = &lens.delayed };
static int fuse_fd = -1, null_fd = -1;
/* The request whose answer begins the session, for patch_init(). */
static uint64_t init_unique;
static uint32_t init_offered, init_offered2;
static pthread_t serving;

static void report_status(int status_fd, const char *fmt, ...) CORDON_PRINTF(2, 3);

/* Writes one line to the supervisor, or to stderr without one. */
static void report_status(int status_fd, const char *fmt, ...)
{
	char line[1024];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (n > 0)
		(void)cordon_write_all(status_fd >= 0 ? status_fd : STDERR_FILENO, line,
				       (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

static int parse_number(const char *s, int *ret)
{
	uint64_t value;

	if (cordon_parse_u64(s, 0, INT32_MAX, &value) < 0)
		return -EINVAL;
	*ret = (int)value;
	return 0;
}

static int parse(int argc, char **argv, struct arguments *ret)
{
	const struct {
		const char *name;
		int *value;
	} options[] = {
		{ "--root-fd", &ret->root_fd },		{ "--policy-fd", &ret->policy_fd },
		{ "--fuse-fd", &ret->fuse_fd },		{ "--status-fd", &ret->status_fd },
		{ "--refusals-fd", &ret->refusals_fd }, { "--shown-fd", &ret->shown_fd },
		{ "--meter-fd", &ret->meter_fd },	{ "--parent", &ret->parent },
	};

	for (int i = 1; i < argc; i += 2) {
		size_t k = 0;

		while (k < CORDON_ARRAY_SIZE(options) && !cordon_streq(argv[i], options[k].name))
			k++;
		if (k == CORDON_ARRAY_SIZE(options) || i + 1 == argc || parse_number(argv[i + 1], options[k].value) < 0)
			return -EINVAL;
	}
	return ret->root_fd > 2 && ret->policy_fd > 2 && ret->fuse_fd > 2 ? 0 : -EINVAL;
}

/* Closes every descriptor that the supervisor did not pass on purpose. */
static void close_others(const struct arguments *args)
{
	const int kept[] = { args->root_fd,	args->policy_fd, args->fuse_fd, args->status_fd,
			     args->refusals_fd, args->shown_fd,	 args->meter_fd };

	cordon_close_except(kept, CORDON_ARRAY_SIZE(kept));
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(kept); i++)
		(void)fcntl(kept[i], F_SETFD, FD_CLOEXEC);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	/* As root, too. Without capabilities the lens can do on the host what its user id can do, and not more than
	 * the run could do with the same id and no capabilities. */
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* Gives up rights, and has the kernel end the lens when the supervisor dies. */
static int drop_rights(pid_t parent, struct cordon_error *err)
{
	struct rlimit files;
	int r;

	/* SIGTERM, so that the lens removes the temporary names before it ends. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		return cordon_fail_errno(err, -errno, "prctl(PR_SET_PDEATHSIG)");
	if (parent > 0 && getppid() != parent)
		return cordon_fail(err, -ESRCH, CORDON_KIND_IO, "the supervisor is gone");
	r = drop_capabilities();
	if (r < 0)
		return cordon_fail_errno(err, r, "capset");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return cordon_fail_errno(err, -errno, "prctl(PR_SET_NO_NEW_PRIVS)");
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return cordon_fail_errno(err, -errno, "prctl(PR_SET_DUMPABLE)");
	cordon_sys_request_short_slice();
	(void)umask(0); /* the kernel has applied the caller's umask */
	if (chdir("/") < 0)
		return cordon_fail_errno(err, -errno, "chdir");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
		/* The other half is for files without a name, for listings and for the current request. */
		lens.max_files = files.rlim_cur / 2 < LENS_FILES_MAX ? files.rlim_cur / 2 : LENS_FILES_MAX;
	}
	return 0;
}

/*
 * The lens ends in two steps. The second thread ends first, while the first one still serves requests: it may wait
 * for the invalidator, which may wait for an answer of the lens. Then the second thread replaces the device by
 * /dev/null, so that the kernel ends the remaining requests, and interrupts the read of the first one.
 */
static void request_end(int sig)
{
	int saved = errno;

	(void)sig;
	lens_monitor_stop(&lens);
	errno = saved;
}

static void interrupt_read(int sig)
{
	(void)sig;
}

static void *run_monitor(void *data)
{
	lens_monitor_run(data);
	(void)dup2(null_fd, fuse_fd);
	(void)pthread_kill(serving, SIGUSR1);
	return NULL;
}

/* Only the serving thread takes signals. */
static int start_monitor(pthread_t *ret, struct cordon_error *err)
{
	sigset_t all, before;
	int r;

	serving = pthread_self();
	sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (r == 0) {
		r = pthread_create(ret, NULL, run_monitor, &lens);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	return r ? cordon_fail_errno(err, -r, "cannot start a thread") : 0;
}

static int catch_signals(struct cordon_error *err)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction end = { .sa_handler = request_end }, ignore = { .sa_handler = SIG_IGN };
	struct sigaction interrupt = { .sa_handler = interrupt_read };

	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null_fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open /dev/null");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], &end, NULL) < 0)
			return cordon_fail_errno(err, -errno, "sigaction");
	if (sigaction(SIGUSR1, &interrupt, NULL) < 0)
		return cordon_fail_errno(err, -errno, "sigaction");
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGXFSZ, &ignore, NULL);
	return 0;
}

static void op_init(void *data, struct fuse_conn_info *conn)
{
	/* We get no OPEN that could truncate. Node ids are addresses in our memory, so no one may make them up (no
	 * export). */
	unsigned int unwanted = FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_SPLICE_READ |
				FUSE_CAP_IOCTL_DIR | FUSE_CAP_READDIRPLUS_AUTO;

	(void)data;
	/* With fanotify, content stays in the kernel's cache until a change is reported; without it, the kernel
	 * compares times. */
	if (lens.fanotify_fd >= 0)
		unwanted |= FUSE_CAP_AUTO_INVAL_DATA;
	conn->want &= ~unwanted;
	conn->want |= conn->capable & (FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS);
	conn->max_write = LENS_REQUEST_MAX;
	conn->max_background = 64;
	conn->time_gran = 1;
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_err(req, ENOSYS); /* the kernel does not ask again: LOOKUP decided what may be opened */
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	/* Without fanotify the kernel must not cache lists, and only a successful answer can have that flag. */
	if (lens.fanotify_fd >= 0)
		fuse_reply_err(req, ENOSYS);
	else
		fuse_reply_open(req, fi);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_err(req, ENOSYS);
}

static const struct fuse_lowlevel_ops operations = {
	.init = op_init,
	.lookup = lens_op_lookup,
	.forget = lens_op_forget,
	.forget_multi = lens_op_forget_multi,
	.getattr = lens_op_getattr,
	.setattr = lens_op_setattr,
	.readlink = lens_op_readlink,
	.mknod = lens_op_mknod,
	.mkdir = lens_op_mkdir,
	.unlink = lens_op_unlink,
	.rmdir = lens_op_rmdir,
	.symlink = lens_op_symlink,
	.rename = lens_op_rename,
	.link = lens_op_link,
	.open = op_open,
	.read = lens_op_read,
	.write = lens_op_write,
	.flush = op_flush,
	.fsync = lens_op_fsync,
	.opendir = op_opendir,
	.readdir = lens_op_readdir,
	.readdirplus = lens_op_readdirplus,
	.fsyncdir = lens_op_fsyncdir,
	.statfs = lens_op_statfs,
	.setxattr = lens_op_setxattr,
	.getxattr = lens_op_getxattr,
	.listxattr = lens_op_listxattr,
	.removexattr = lens_op_removexattr,
	.create = lens_op_create,
	.release = lens_op_release,
	.fallocate = lens_op_fallocate,
	.lseek = lens_op_lseek,
	.copy_file_range = lens_op_copy_file_range,
};

static ssize_t device_read(int fd, void *bytes, size_t size, void *data)
{
	const struct fuse_in_header *header = bytes;
	ssize_t n = read(fd, bytes, size);

	(void)data;
	if (n >= (ssize_t)(sizeof(*header) + sizeof(struct fuse_init_in)) && header->opcode == FUSE_INIT) {
		const struct fuse_init_in *init = (const void *)(header + 1);

		init_unique = header->unique;
		init_offered = init->flags;
		init_offered2 = init->flags & FUSE_INIT_EXT ? init->flags2 : 0;
	}
	/* A read ends with 0 when the second thread has put /dev/null here, and with ECONNABORTED when the view was
	 * unmounted during the read; libfuse would print a message for the latter. Both mean that the view has
	 * ended, which is ENODEV for libfuse. */
	if (n == 0 || (n < 0 && errno == ECONNABORTED)) {
		errno = ENODEV;
		return -1;
	}
	return n;
}

/*
 * Adds to the answer to INIT what libfuse 3.14 does not know. Without FUSE_HANDLE_KILLPRIV_V2 the kernel asks for
 * security.capability before each write; with it the file system drops set-user-id bits and capabilities itself,
 * which the host's file system does. The time limit is the last resort against a lens that hangs.
 */
static void patch_init(struct iovec *iov, int count)
{
	const struct fuse_out_header *header = iov[0].iov_base;
	struct fuse_init_out *out = count > 1 ? iov[1].iov_base : NULL;

	if (!init_unique || header->unique != init_unique)
		return;
	init_unique = 0;
	if (header->error || !out || iov[1].iov_len < sizeof(*out))
		return;
	out->flags |= init_offered & FUSE_HANDLE_KILLPRIV_V2;
	if (init_offered2 & INIT_REQUEST_TIMEOUT) {
		const uint16_t seconds = REQUEST_TIMEOUT;

		out->flags2 |= INIT_REQUEST_TIMEOUT;
		memcpy((char *)out + INIT_REQUEST_TIMEOUT_AT, &seconds, sizeof(seconds));
	}
}

static ssize_t device_writev(int fd, struct iovec *iov, int count, void *data)
{
	(void)data;
	if (init_unique)
		patch_init(iov, count);
	return writev(fd, iov, count);
}

static void log_nothing(enum fuse_log_level level, const char *fmt, va_list args)
{
	(void)level;
	(void)fmt;
	(void)args;
}

static int session_new(struct cordon_error *err)
{
	static const struct fuse_custom_io io = { .read = device_read, .writev = device_writev };
	char name[] = "cordon-lens";
	char *argv[] = { name, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	int r;

	fuse_set_log_func(log_nothing);
	lens.session = fuse_session_new(&args, &operations, sizeof(operations), &lens);
	if (!lens.session)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "cannot begin a FUSE session");
	r = fuse_session_custom_io(lens.session, &io, fuse_fd);
	return r < 0 ? cordon_fail(err, -EIO, CORDON_KIND_IO, "cannot use the FUSE descriptor") : 0;
}

/* Serves requests until the view is unmounted or a signal ends the lens. */
static int serve(int status_fd)
{
	struct fuse_buf buf = { .mem = NULL };
	bool reported = false;
	int r = 0;

	while (!fuse_session_exited(lens.session)) {
		lens_delayed_serve(&lens);
		r = fuse_session_receive_buf(lens.session, &buf);
		if (r == -EINTR || r == -EAGAIN)
			continue;
		if (r <= 0)
			break;
		if (lens.meter)
			cordon_meter_count(&lens.meter->lens_requests);
		(void)pthread_mutex_lock(&lens.lock);
		lens.reported = 0;
		fuse_session_process_buf(lens.session, &buf);
		(void)pthread_mutex_unlock(&lens.lock);
		if (!reported && status_fd >= 0) {
			report_status(status_fd, "ready%s\n", lens.fanotify_fd >= 0 ? "" : " unwatched");
			(void)close(status_fd);
		}
		reported = true;
	}
	free(buf.mem);
	return r < 0 ? r : 0;
}

/* From here on the lens can open, execute and reach nothing outside the root, whatever a request makes it try.
 * Without Landlock it goes on: then the run itself is refused, or its report mentions it. */
static int confine(struct cordon_error *err)
{
	unsigned int abi = cordon_landlock_abi();
	autofd int ruleset = abi ? cordon_landlock_begin(abi) : -1;
	int r = 0;

	if (!abi)
		return 0;
	if (ruleset < 0)
		r = ruleset;
	if (r == 0)
		r = cordon_landlock_allow(ruleset, abi, lens.root_fd, CORDON_LANDLOCK_WRITE);
	if (r == 0)
		r = cordon_landlock_enforce(ruleset, abi);
	return r < 0 ? cordon_fail_errno(err, r, "Landlock") : 0;
}

static int read_shown(int fd, struct cordon_error *err)
{
	int r;

	lens.shown = (struct cordon_buf)CORDON_BUF(LENS_SHOWN_MAX);
	if (fd < 0)
		return 0;
	r = cordon_read_fd(fd, "what the run sees", &lens.shown, err);
	(void)close(fd);
	if (r == 0 && lens.shown.len && lens.shown.data[lens.shown.len - 1])
		r = cordon_fail(err, -EBADMSG, CORDON_KIND_INTERNAL, "the list of what the run sees is damaged");
	return r;
}

/* A run that measures gives us memory for a meter. */
static int map_meter(int fd, struct cordon_error *err)
{
	struct cordon_meter *meters;

	if (fd < 0)
		return 0;
	meters = mmap(NULL, CORDON_METER__MAX * sizeof(*meters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (meters == MAP_FAILED)
		return cordon_fail_errno(err, -errno, "cannot map the meter");
	lens.meter = &meters[CORDON_METER_LENS];
	return 0;
}

static int prepare(struct arguments *args, struct cordon_error *err)
{
	autofd int invalidator_device = -1;
	int r;

	close_others(args);
	r = drop_rights(args->parent, err);
	if (r < 0)
		return r;
	fuse_fd = args->fuse_fd;
	lens.root_fd = args->root_fd;
	lens.refusals_fd = args->refusals_fd;
	lens.euid = geteuid();
	lens.no_attributes = lens_attr_has_none(args->root_fd);
	r = cordon_handover_read(args->policy_fd, args->root_fd, &lens.policy, &lens.editor_temps, err);
	(void)close(args->policy_fd);
	if (r < 0)
		return r;
	r = read_shown(args->shown_fd, err);
	if (r < 0)
		return r;
	r = map_meter(args->meter_fd, err);
	if (r < 0)
		return r;
	r = lens_judge_prepare(&lens, err);
	if (r < 0)
		return r;
	lens.bytes = malloc(LENS_REQUEST_MAX);
	r = lens.bytes ? lens_nodes_init(&lens) : -ENOMEM;
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot begin the view");
	lens_known_init(&lens);
	r = catch_signals(err);
	if (r < 0)
		return r;
	invalidator_device = lens_invalidator_device(fuse_fd);
	r = confine(err);
	if (r < 0)
		return r;
	if (invalidator_device >= 0)
		(void)lens_invalidator_start(&lens, invalidator_device);
	r = lens_monitor_init(&lens);
	return r < 0 ? cordon_fail_errno(err, r, "cannot hear of changes") : session_new(err);
}

int main(int argc, char **argv)
{
	struct arguments args = { .root_fd = -1,
				  .policy_fd = -1,
				  .fuse_fd = -1,
				  .status_fd = -1,
				  .refusals_fd = -1,
				  .shown_fd = -1,
				  .meter_fd = -1 };
	struct cordon_error err = { 0 };
	pthread_t monitor;
	int r;

	if (parse(argc, argv, &args) < 0) {
		report_status(-1,
			      "cordon-lens: started by cordon run, not by hand\n"
			      "usage: cordon-lens --root-fd N --policy-fd N --fuse-fd N [--status-fd N] [--refusals-fd N]\n"
			      "       [--shown-fd N] [--parent PID]\n");
		return 2;
	}
	r = prepare(&args, &err);
	if (r == 0)
		r = start_monitor(&monitor, &err);
	if (r < 0) {
		report_status(args.status_fd, "error: %s\n", err.message);
		return 1;
	}
	r = serve(args.status_fd);
	lens_report_missed(&lens);
	lens_monitor_stop(&lens);
	(void)pthread_join(monitor, NULL);
	/* Remove the temporary names only now, when no request can make another one. */
	lens_temp_names_remove(&lens);
	lens_invalidator_stop(&lens);
	return r < 0 || lens.invalidator_gone ? 1 : 0;
}
