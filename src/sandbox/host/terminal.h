/* SPDX-License-Identifier: Apache-2.0 */
/* Between the user's terminal and the agent's own: raw bytes both ways, the size, and the settings restored. */
#ifndef CORDON_SANDBOX_TERMINAL_H
#define CORDON_SANDBOX_TERMINAL_H

#include <poll.h>
#include <termios.h>

#include "base/util.h"

#define CORDON_TERMINAL_BUFFER 16384

struct cordon_flow {
	size_t start, end;
	char data[CORDON_TERMINAL_BUFFER];
};

struct cordon_terminal {
	int master;	/* of the agent's pty, or -1 */
	int input;	/* the user's terminal to read from, or -1 */
	int output;	/* the user's terminal to write to, or -1 */
	int own_output; /* the same, opened again: writing there never waits; or -1 */
	bool raw;
	struct termios saved;
	struct cordon_flow in, out;
};

/* `streams` says which of 0, 1, 2 are terminals of ours. Takes `master`. Puts the user's terminal into raw mode. */
void cordon_terminal_begin(struct cordon_terminal *terminal, int master, const bool streams[static 3]);
/* What to poll for: two entries, fd -1 where nothing is wanted. */
void cordon_terminal_poll(const struct cordon_terminal *terminal, struct pollfd fds[static 2]);
void cordon_terminal_move(struct cordon_terminal *terminal, const struct pollfd fds[static 2]);
void cordon_terminal_resize(const struct cordon_terminal *terminal);
/* Writes out what the agent still printed and restores the user's terminal. */
void cordon_terminal_end(struct cordon_terminal *terminal);

#endif
