/* SPDX-License-Identifier: Apache-2.0 */
/* The hand's own process: makes entries in held directories, one at a time, as the supervisor asks for them. */
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/exit.h"
#include "base/io.h"
#include "base/move_dir.h"
#include "base/sys.h"
#include "base/title.h"
#include "sandbox/inside/hand.h"
#include "sandbox/inside/landlock.h"

/* Opens with O_NONBLOCK, so that we never wait when a FIFO has the name by now. The flag changes nothing for a regular
 * file, and anything else is refused with -ENOTSUP. O_EXCL needs none of this: what it opens is a new regular file. */
static int open_file(const struct cordon_hand_request *request, int dir, int *ret_fd)
{
	bool is_new = (request->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	struct open_how how = { .flags = request->flags | (is_new ? 0 : O_NONBLOCK) | O_NOCTTY | O_CLOEXEC,
				.mode = request->mode,
				.resolve = request->resolve | RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	int fd = cordon_sys_openat2(dir, request->name, &how, sizeof(how));
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!is_new && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return -ENOTSUP;
	}
	if (!is_new && !(request->flags & O_NONBLOCK)) {
		int now = fcntl(fd, F_GETFL);

		if (now < 0 || fcntl(fd, F_SETFL, now & ~O_NONBLOCK) < 0) {
			close(fd);
			return -EIO;
		}
	}
	*ret_fd = fd;
	return 0;
}

/* Links the file by its entry in /proc, which leads to the descriptor and not through a name. */
static int link_descriptor(const struct cordon_hand_request *request, int dir, int file)
{
	char path[CORDON_FD_PATH_SIZE];

	return linkat(AT_FDCWD, cordon_fd_path(file, path), dir, request->name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int bind_socket(const struct cordon_hand_request *request, int dir, int socket)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(request->name);
	int r;

	if (n >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, request->name, n + 1);
	/* There is no bindat(2), so we change the directory. */
	if (fchdir(dir) < 0)
		return -errno;
	r = bind(socket, (const struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1)) < 0
		    ? -errno
		    : 0;
	return chdir("/") < 0 ? -errno : r;
}

static int serve_request(const struct cordon_hand_request *request, const int dirs[static 2], int *ret_fd,
			 bool *ret_too_large)
{
	umask((mode_t)request->umask);
	switch ((cordon_hand_request_kind)request->kind) {
	case CORDON_HAND_OPEN:
		return open_file(request, dirs[0], ret_fd);
	case CORDON_HAND_MKDIR:
		return mkdirat(dirs[0], request->name, (mode_t)request->mode) < 0 ? -errno : 0;
	case CORDON_HAND_MKNOD:
		return mknodat(dirs[0], request->name, (mode_t)request->mode, 0) < 0 ? -errno : 0;
	case CORDON_HAND_SYMLINK:
		return symlinkat(request->text, dirs[0], request->name) < 0 ? -errno : 0;
	case CORDON_HAND_LINK:
		if (!*request->other)
			return link_descriptor(request, dirs[0], dirs[1]);
		return linkat(dirs[1], request->other, dirs[0], request->name, 0) < 0 ? -errno : 0;
	case CORDON_HAND_RENAME:
		return cordon_move_dir(dirs[1], request->other, dirs[0], request->name, (unsigned int)request->flags,
				       ret_too_large);
	case CORDON_HAND_BIND:
		return bind_socket(request, dirs[0], dirs[1]);
	}
	return -EINVAL;
}

static bool is_whole(const struct cordon_hand_request *request, size_t n)
{
	return n > offsetof(struct cordon_hand_request, text) && memchr(request->name, '\0', sizeof(request->name)) &&
	       memchr(request->other, '\0', sizeof(request->other)) &&
	       memchr(request->text, '\0', n - offsetof(struct cordon_hand_request, text));
}

/* Serves requests until the supervisor, and with it the run, is gone. */
_Noreturn static void serve(int socket)
{
	static struct cordon_hand_request request; /* static, so that only the pages that a message fills are used */
	bool soon = false;

	for (;;) {
		struct cordon_hand_reply reply = { .result = -EINVAL };
		int dirs[2], fd = -1;
		bool too_large = false;
		size_t n;
		int r = cordon_hand_receive(socket, &request, sizeof(request), soon, &n, dirs);

		if (r != 1)
			_exit(0);
		if (is_whole(&request, n) && dirs[0] >= 0)
			reply.result = serve_request(&request, dirs, &fd, &too_large);
		reply.too_large = too_large;
		soon = true;
		r = cordon_hand_send(socket, &reply, sizeof(reply), &fd, fd >= 0 ? 1 : 0);
		cordon_closep(&fd);
		cordon_closep(&dirs[0]);
		cordon_closep(&dirs[1]);
		if (r < 0)
			_exit(0);
	}
}

_Noreturn void cordon_hand(const struct cordon_inside *in, int socket)
{
	struct cordon_hand_reply hello;
	int r, ruleset = -1;

	cordon_title_set("cordon-hand");
	cordon_sys_request_short_slice();
	cordon_close_except(&socket, 1);
	r = setsid() < 0 ? -errno : cordon_limits_child(in->limits);
	if (r == 0 && in->landlock_abi)
		ruleset = cordon_agent_ruleset(in);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0)
		r = cordon_caps_keep(0);
	if (r == 0 && ruleset >= 0)
		r = cordon_landlock_enforce(ruleset, in->landlock_abi);
	cordon_close_except(&socket, 1);
	if (r == 0)
		r = cordon_seccomp_install(CORDON_SECCOMP_BASE, NULL);
	/* When we end here, the supervisor refuses what the agent asked for. */
	hello.result = getpid();
	if (r < 0 || cordon_hand_send(socket, &hello, sizeof(hello), NULL, 0) < 0)
		_exit(CORDON_EXIT_REFUSED);
	serve(socket);
}
