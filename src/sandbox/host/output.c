/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor copies what the agent writes to the caller's files, by moving whole pages where that works. */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "sandbox/host/output.h"
#include "sandbox/host/terminal.h"

#define PIPE_SIZE (256 << 10)
#define CHUNK 16384

/* Whether this is a regular file that was opened for writing. */
static bool is_file(int fd, struct stat *ret)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fstat(fd, ret) == 0 && S_ISREG(ret->st_mode);
}

static int make_pump(struct cordon_pump *pump, int to, struct cordon_error *err)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return cordon_fail_errno(err, -errno, "cannot make a pipe");
	/* Only our end does not block: the agent must wait when the pipe is full. A smaller pipe works as well. */
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(pair[0], F_SETPIPE_SZ, PIPE_SIZE);
	*pump = (struct cordon_pump){ .from = pair[0], .inner = pair[1], .to = to };
	return 0;
}

int cordon_output_new(struct cordon_output **ret_output, struct cordon_error *err)
{
	struct cordon_output *output = calloc(1, sizeof(*output));
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct stat first, second;
	bool files[2] = { is_file(1, &first), is_file(2, &second) };
	int r = 0;

	if (!output)
		return cordon_fail_errno(err, -ENOMEM, "cannot begin");
	for (int i = 0; i < 2; i++)
		output->pumps[i] = (struct cordon_pump){ .from = -1, .inner = -1 };
	/* When a file may not grow any more, the write should fail instead of ending the supervisor. */
	if (files[0] || files[1])
		sigaction(SIGXFSZ, &ignore, NULL);
	output->one = files[0] && files[1] && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
	if (files[1])
		r = make_pump(&output->pumps[1], 2, err);
	if (r == 0 && files[0] && !output->one)
		r = make_pump(&output->pumps[0], 1, err);
	if (r < 0) {
		cordon_output_free(output);
		return r;
	}
	*ret_output = output;
	return 0;
}

struct cordon_output *cordon_output_free(struct cordon_output *output)
{
	for (int i = 0; output && i < 2; i++) {
		cordon_closep(&output->pumps[i].from);
		cordon_closep(&output->pumps[i].inner);
	}
	free(output);
	return NULL;
}

int cordon_output_install(const struct cordon_output *output)
{
	for (int i = 0; i < 2; i++) {
		int inner = output->pumps[output->one ? 1 : i].inner;

		if (inner >= 0 && dup2(inner, i + 1) < 0)
			return -errno;
	}
	return 0;
}

void cordon_output_begin(struct cordon_output *output)
{
	for (int i = 0; i < 2; i++)
		cordon_closep(&output->pumps[i].inner);
}

void cordon_output_poll(const struct cordon_output *output, struct pollfd fds[static 2])
{
	for (int i = 0; i < 2; i++)
		fds[i] = (struct pollfd){ .fd = output->pumps[i].from, .events = POLLIN };
}

/* Moves pages, except the last byte, which the caller reads to see whether the line ends. False when the file takes no
 * more. */
static bool move_pages(const struct cordon_pump *pump, size_t n)
{
	while (n > 1) {
		ssize_t moved = splice(pump->from, NULL, pump->to, NULL, n - 1, SPLICE_F_MOVE);

		if (moved < 0 && errno == EINTR)
			continue;
		/* A file that was opened for appending can't be spliced to, and neither can some file systems. */
		if (moved < 0)
			return errno == EINVAL || errno == EAGAIN;
		if (moved == 0)
			return true;
		n -= (size_t)moved;
	}
	return true;
}

/* False when the stream has ended. A file that can't be written any more ends it too, as a pipe without a reader
 * does. */
static bool copy(struct cordon_output *output, const struct cordon_pump *pump, int waiting)
{
	char bytes[CHUNK];

	if (waiting > CHUNK && !move_pages(pump, (size_t)waiting))
		return false;
	do {
		ssize_t n = read(pump->from, bytes, sizeof(bytes));

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0 || cordon_write_all(pump->to, bytes, (size_t)n) < 0)
			return false;
		if (pump->to == 2)
			cordon_screen_update(&output->screen, bytes, (size_t)n);
		waiting -= (int)n;
	} while (waiting > 0);
	return true;
}

/* Forwards what is in the pipe now, and no more, because the supervisor has other work too. */
static void forward(struct cordon_output *output, struct cordon_pump *pump)
{
	int waiting = 0;

	if (pump->from < 0)
		return;
	if (ioctl(pump->from, FIONREAD, &waiting) < 0)
		waiting = 0;
	if (!copy(output, pump, waiting))
		cordon_closep(&pump->from);
}

void cordon_output_move(struct cordon_output *output, const struct pollfd fds[static 2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i].revents && fds[i].fd == output->pumps[i].from)
			forward(output, &output->pumps[i]);
}

void cordon_output_forward(struct cordon_output *output)
{
	if (output->terminal)
		cordon_terminal_forward(output->terminal);
	for (int i = 0; i < 2; i++)
		forward(output, &output->pumps[i]);
}

void cordon_output_end(struct cordon_output *output)
{
	for (int i = 0; i < 2; i++) {
		int waiting = 1;

		while (output->pumps[i].from >= 0 && waiting > 0) {
			forward(output, &output->pumps[i]);
			if (output->pumps[i].from >= 0 && ioctl(output->pumps[i].from, FIONREAD, &waiting) < 0)
				break;
		}
	}
}
