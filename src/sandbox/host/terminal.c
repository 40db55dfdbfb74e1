/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor copies between the user's terminal and the agent's own. */
#include <fcntl.h>
#include <sys/ioctl.h>

#include "base/io.h"
#include "sandbox/host/terminal.h"

#define END_WAIT_MS 5000
#define FORWARD_TRIES 4

void cordon_terminal_begin(struct cordon_terminal *terminal, int master, const bool streams[static 3],
			   struct cordon_screen *screen)
{
	struct termios raw;

	terminal->master = master;
	terminal->screen = screen;
	terminal->input = streams[0] ? 0 : -1;
	terminal->output = streams[1] ? 1 : streams[2] ? 2 : streams[0] ? 0 : -1;
	terminal->own_output = cordon_open_terminal_again(terminal->output);
	terminal->raw = false;
	terminal->in.start = terminal->in.end = terminal->out.start = terminal->out.end = 0;
	/* A terminal that takes no more must never keep the supervisor from ending the run. */
	fcntl(master, F_SETFL, fcntl(master, F_GETFL) | O_NONBLOCK);
	cordon_terminal_resize(terminal);
	if (terminal->input < 0 || tcgetattr(terminal->input, &terminal->saved) < 0)
		return;
	/* The agent's terminal begins with the settings of the user's. */
	tcsetattr(master, TCSANOW, &terminal->saved);
	raw = terminal->saved;
	cfmakeraw(&raw);
	terminal->raw = tcsetattr(terminal->input, TCSADRAIN, &raw) == 0;
}

void cordon_terminal_poll(const struct cordon_terminal *terminal, struct pollfd fds[static 2])
{
	bool room_in = terminal->in.end < sizeof(terminal->in.data);
	bool waiting = terminal->out.start < terminal->out.end;

	fds[0] = (struct pollfd){ .fd = terminal->master >= 0 && room_in ? terminal->input : -1, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = terminal->master, .events = waiting ? 0 : POLLIN };
	/* Input and output are nearly always one terminal, so one entry serves both. */
	if (waiting && terminal->master >= 0) {
		fds[1].fd = -1;
		fds[0].events = fds[0].fd >= 0 ? POLLIN | POLLOUT : POLLOUT;
		fds[0].fd = fds[0].fd >= 0 ? fds[0].fd : terminal->own_output;
	}
	if (terminal->in.start < terminal->in.end)
		fds[1] = (struct pollfd){ .fd = terminal->master, .events = (short)(fds[1].events | POLLOUT) };
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

/* Writes to the user's terminal; what it does not take now stays for the next time. */
static void show(struct cordon_terminal *terminal)
{
	struct cordon_flow *out = &terminal->out;

	if (terminal->own_output >= 0) {
		ssize_t n = write(terminal->own_output, out->data + out->start, out->end - out->start);

		if (n > 0 && terminal->screen)
			cordon_screen_update(terminal->screen, out->data + out->start, (size_t)n);
		if (n > 0)
			out->start += (size_t)n;
		if (out->start < out->end && (n >= 0 || errno == EAGAIN || errno == EINTR))
			return;
	} else if (terminal->output >= 0) {
		cordon_write_all(terminal->output, out->data + out->start, out->end - out->start);
		if (terminal->screen)
			cordon_screen_update(terminal->screen, out->data + out->start, out->end - out->start);
	}
	out->start = out->end = 0;
}

void cordon_terminal_move(struct cordon_terminal *terminal, const struct pollfd fds[static 2])
{
	bool waiting = terminal->out.start < terminal->out.end;

	if (terminal->master < 0)
		return;
	if (fds[0].fd >= 0 && fds[0].fd == terminal->input && fds[0].revents & ~POLLOUT &&
	    !fill(&terminal->in, terminal->input))
		terminal->input = -1; /* the user's terminal has hung up */
	if (terminal->in.start < terminal->in.end)
		drain(&terminal->in, terminal->master);
	if (waiting) {
		if (fds[0].revents)
			show(terminal);
	} else if (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) {
		bool open = fill(&terminal->out, terminal->master);

		show(terminal);
		if (!open)
			cordon_closep(&terminal->master); /* no process inside has the terminal open any more */
	}
}

void cordon_terminal_forward(struct cordon_terminal *terminal)
{
	if (terminal->out.start < terminal->out.end)
		show(terminal);
	for (int tries = 0; tries < FORWARD_TRIES && terminal->master >= 0 && terminal->out.start == terminal->out.end;
	     tries++) {
		/* cordon_terminal_move() handles the end of the terminal. */
		if (!fill(&terminal->out, terminal->master) || terminal->out.start == terminal->out.end)
			return;
		show(terminal);
	}
}

void cordon_terminal_resize(const struct cordon_terminal *terminal)
{
	struct winsize size;

	if (terminal->master >= 0 && terminal->output >= 0 && ioctl(terminal->output, TIOCGWINSZ, &size) == 0)
		ioctl(terminal->master, TIOCSWINSZ, &size);
}

/* Waits for the user's terminal while it still takes output; gives up on a terminal that takes nothing for
 * END_WAIT_MS. */
static bool show_all(struct cordon_terminal *terminal)
{
	struct pollfd ready = { .fd = terminal->own_output, .events = POLLOUT };

	while (terminal->out.start < terminal->out.end) {
		size_t before = terminal->out.start;

		show(terminal);
		if (terminal->out.start == before && poll(&ready, 1, END_WAIT_MS) == 0)
			return false;
	}
	return true;
}

void cordon_terminal_end(struct cordon_terminal *terminal)
{
	while (terminal->master >= 0 && show_all(terminal))
		if (!fill(&terminal->out, terminal->master) || !terminal->out.end)
			break;
	if (terminal->raw)
		tcsetattr(0, TCSADRAIN, &terminal->saved);
	terminal->raw = false;
	cordon_closep(&terminal->master);
	cordon_closep(&terminal->own_output);
}
