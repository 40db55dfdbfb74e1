/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program in a sandbox and captures what it writes. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/exit.h"
#include "base/io.h"
#include "run/captured.h"

#define HANGS_SECONDS 30

/* A run and the process that supervises it. */
struct supervised {
	pid_t pid;
	struct cordon_captured *end; /* memory that both processes share */
};

static _Noreturn void supervise(const struct cordon_run_spec *spec, const char *home, struct cordon_captured *ret_end)
{
	struct cordon_result result = { 0 };
	struct cordon_error err = { 0 };

	if (home && setenv("CORDON_HOME", home, 1) < 0)
		_exit(CORDON_EXIT_REFUSED);
	cordon_run(spec, NULL, &result, &err);
	*ret_end = (struct cordon_captured){ .own_exit = result.own_exit,
					     .state = result.state,
					     .hit_memory = result.hit_memory,
					     .error = result.error };
	_exit(0);
}

/* A supervisor ends a run at its time limit. One that has not ended long after that hangs; 0 when there is no limit. */
static unsigned int seconds_for(const struct cordon_run_spec *spec)
{
	uint64_t most = (uint64_t)HANGS_SECONDS * 1000000;

	return spec->timeout_ms && spec->timeout_ms < most && spec->grace_ms < most
		       ? (unsigned int)((spec->timeout_ms + spec->grace_ms) / 1000) + HANGS_SECONDS
		       : 0;
}

static int begin(const struct cordon_run_spec *spec, const struct cordon_capture *how, struct supervised *ret)
{
	/* The run ends with the caller: cordon ends a run whose supervisor gets SIGTERM. */
	struct cordon_fork child = { .streams = how->streams,
				     .death_signal = SIGTERM,
				     .seconds = seconds_for(spec),
				     .file_bytes = how->file_bytes };
	struct cordon_captured *end = mmap(NULL, sizeof(*end), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
					   0);

	if (end == MAP_FAILED)
		return -ENOMEM;
	ret->pid = cordon_child_fork(&child);
	if (ret->pid == 0)
		supervise(spec, how->home, end);
	if (ret->pid < 0) {
		munmap(end, sizeof(*end));
		return (int)ret->pid;
	}
	ret->end = end;
	return 0;
}

static int finish(const struct supervised *run, struct cordon_captured *ret_end)
{
	int status = 0, r = 0;

	while (r == 0 && waitpid(run->pid, &status, 0) < 0)
		if (errno != EINTR)
			r = -errno;
	if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status)))
		r = -EIO;
	if (r == 0)
		*ret_end = *run->end;
	munmap(run->end, sizeof(*run->end));
	return r;
}

int cordon_run_apart(const struct cordon_run_spec *spec, const struct cordon_capture *how,
		     struct cordon_captured *ret_end, struct cordon_error *err)
{
	struct supervised run = { 0 };
	int r = begin(spec, how, &run);

	if (r == 0)
		r = finish(&run, ret_end);
	return r < 0 ? cordon_fail_errno(err, r, "cannot supervise %s", spec->argv[0]) : 0;
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
	int out[2] = { -1, -1 }, text[2] = { -1, -1 }, r = 0;
	autofd int in = make_input(input, n_input);
	struct supervised run = { 0 };

	if (in < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(text, O_CLOEXEC) < 0)
		r = in < 0 ? in : -errno;
	if (r == 0) {
		const int streams[] = { in, out[1], text[1] };

		r = begin(spec, &(struct cordon_capture){ .streams = streams }, &run);
	}
	cordon_closep(&out[1]);
	cordon_closep(&text[1]);
	if (r == 0) {
		collect(&out[0], ret_out, &text[0], ret_text);
		r = finish(&run, ret_end);
	}
	cordon_closep(&out[0]);
	cordon_closep(&text[0]);
	return r < 0 ? cordon_fail_errno(err, r, "cannot supervise %s", spec->argv[0]) : 0;
}
