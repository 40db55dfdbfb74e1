/* SPDX-License-Identifier: Apache-2.0 */
/* Between the user's terminal and the agent's own. */
#include <fcntl.h>
#include <sys/ioctl.h>

#include "base/io.h"
#include "sandbox/terminal.h"

void cordon_terminal_begin(struct cordon_terminal *terminal, int master, const bool streams[static 3])
{
	struct termios raw;

	terminal->master = master;
	terminal->input = streams[0] ? 0 : -1;
	terminal->output = streams[1] ? 1 : streams[2] ? 2 : streams[0] ? 0 : -1;
	terminal->raw = false;
	terminal->in.start = terminal->in.end = terminal->out.start = terminal->out.end = 0;
	/* A full pipe of ours must never stop the supervisor from ending the run. */
	fcntl(master, F_SETFL, fcntl(master, F_GETFL) | O_NONBLOCK);
	cordon_terminal_resize(terminal);
	if (terminal->input < 0 || tcgetattr(terminal->input, &terminal->saved) < 0)
		return;
	/* The agent's terminal starts out as the user's is set up. */
	tcsetattr(master, TCSANOW, &terminal->saved);
	raw = terminal->saved;
	cfmakeraw(&raw);
	terminal->raw = tcsetattr(terminal->input, TCSADRAIN, &raw) == 0;
}

void cordon_terminal_poll(const struct cordon_terminal *terminal, struct pollfd fds[static 2])
{
	bool room_in = terminal->in.end < sizeof(terminal->in.data);

	fds[0] = (struct pollfd){ .fd = terminal->master >= 0 && room_in ? terminal->input : -1, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = terminal->master, .events = POLLIN };
	if (terminal->in.start < terminal->in.end)
		fds[1].events |= POLLOUT;
}

static bool fill(struct cordon_flow *flow, int fd)
{
	ssize_t n;

	if (flow->start == flow->end)
		flow->start = flow->end = 0;
	n = read(fd, flow->data + flow->end, sizeof(flow->data) - flow->end);
	if (n > 0)
		flow->end += (size_t)n;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void drain(struct cordon_flow *flow, int fd)
{
	ssize_t n = write(fd, flow->data + flow->start, flow->end - flow->start);

	if (n > 0)
		flow->start += (size_t)n;
}

static void show(struct cordon_terminal *terminal)
{
	if (terminal->output >= 0)
		cordon_write_all(terminal->output, terminal->out.data + terminal->out.start,
				 terminal->out.end - terminal->out.start);
	terminal->out.start = terminal->out.end = 0;
}

void cordon_terminal_move(struct cordon_terminal *terminal, const struct pollfd fds[static 2])
{
	if (terminal->master < 0)
		return;
	if (fds[0].fd >= 0 && fds[0].revents && !fill(&terminal->in, terminal->input))
		terminal->input = -1; /* the user's terminal hung up */
	if (terminal->in.start < terminal->in.end)
		drain(&terminal->in, terminal->master);
	if (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) {
		bool open = fill(&terminal->out, terminal->master);

		show(terminal);
		if (!open)
			cordon_closep(&terminal->master); /* nobody inside holds the terminal any more */
	}
}

void cordon_terminal_resize(const struct cordon_terminal *terminal)
{
	struct winsize size;

	if (terminal->master >= 0 && terminal->output >= 0 && ioctl(terminal->output, TIOCGWINSZ, &size) == 0)
		ioctl(terminal->master, TIOCSWINSZ, &size);
}

void cordon_terminal_end(struct cordon_terminal *terminal)
{
	while (terminal->master >= 0) {
		size_t before = terminal->out.end;

		if (!fill(&terminal->out, terminal->master) || terminal->out.end == before)
			break;
		show(terminal);
	}
	if (terminal->raw)
		tcsetattr(0, TCSADRAIN, &terminal->saved);
	terminal->raw = false;
	cordon_closep(&terminal->master);
}
