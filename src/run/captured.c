/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program in a sandbox and captures what it writes. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/exit.h"
#include "base/io.h"
#include "run/captured.h"

/* Becomes the supervisor. The result goes to memory that the caller shares. */
static _Noreturn void supervise(const struct cordon_run_spec *spec, int in, int out, int text, pid_t parent,
				struct cordon_captured *ret_end)
{
	struct cordon_result result = { 0 };
	struct cordon_error err = { 0 };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* The run ends with the caller: cordon ends a run whose supervisor gets SIGTERM. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || dup2(in, 0) < 0 || dup2(out, 1) < 0 ||
	    dup2(text, 2) < 0)
		_exit(CORDON_EXIT_REFUSED);
	cordon_run(spec, NULL, &result, &err);
	ret_end->own_exit = result.own_exit;
	ret_end->state = result.state;
	ret_end->error = result.error;
	_exit(0);
}

/* Takes what is there. Returns false at the end. */
static bool take(int fd, struct cordon_buf *buf)
{
	char bytes[4096];
	ssize_t n = read(fd, bytes, sizeof(bytes));
	size_t room = buf ? buf->max - buf->len : 0;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n > 0 && room)
		(void)cordon_buf_add(buf, bytes, (size_t)n < room ? (size_t)n : room);
	return n > 0;
}

static void collect(int *out, struct cordon_buf *ret_out, int *text, struct cordon_buf *ret_text)
{
	while (*out >= 0 || *text >= 0) {
		struct pollfd fds[2] = { { .fd = *out, .events = POLLIN }, { .fd = *text, .events = POLLIN } };

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[0].revents && !take(*out, ret_out))
			cordon_closep(out);
		if (fds[1].revents && !take(*text, ret_text))
			cordon_closep(text);
	}
}

static int make_input(const void *input, size_t n)
{
	int fd = memfd_create("input", MFD_CLOEXEC), r = fd < 0 ? -errno : 0;

	if (r == 0 && n)
		r = cordon_write_all(fd, input, n);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		cordon_closep(&fd);
	return r < 0 ? r : fd;
}

int cordon_run_captured(const struct cordon_run_spec *spec, const void *input, size_t n_input,
			struct cordon_buf *ret_out, struct cordon_buf *ret_text, struct cordon_captured *ret_end,
			struct cordon_error *err)
{
	struct cordon_captured *end = mmap(NULL, sizeof(*end), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
					   0);
	int out[2] = { -1, -1 }, text[2] = { -1, -1 }, status = 0, r = end == MAP_FAILED ? -errno : 0;
	autofd int in = make_input(input, n_input);
	pid_t pid, self = getpid();

	if (r == 0 && (in < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(text, O_CLOEXEC) < 0))
		r = in < 0 ? in : -errno;
	pid = r == 0 ? fork() : -1;
	if (r == 0 && pid < 0)
		r = -errno;
	if (pid == 0)
		supervise(spec, in, out[1], text[1], self, end);
	cordon_closep(&out[1]);
	cordon_closep(&text[1]);
	if (pid > 0) {
		collect(&out[0], ret_out, &text[0], ret_text);
		while (waitpid(pid, &status, 0) < 0)
			if (errno != EINTR)
				r = -errno;
	}
	if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status)))
		r = -EIO;
	if (r == 0)
		*ret_end = *end;
	cordon_closep(&out[0]);
	cordon_closep(&text[0]);
	if (end != MAP_FAILED)
		munmap(end, sizeof(*end));
	return r < 0 ? cordon_fail_errno(err, r, "cannot supervise %s", spec->argv[0]) : 0;
}
