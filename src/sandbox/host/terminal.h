/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor connects the user's terminal with the agent's own: copies bytes in both directions, passes the size
 * on, and restores the settings at the end. */
#ifndef CORDON_SANDBOX_HOST_TERMINAL_H
#define CORDON_SANDBOX_HOST_TERMINAL_H

#include <poll.h>
#include <termios.h>

#include "base/util.h"
#include "sandbox/host/screen.h"

#define CORDON_TERMINAL_BUFFER 16384

struct cordon_flow {
	size_t start, end;
	char data[CORDON_TERMINAL_BUFFER];
};

struct cordon_terminal {
	int master;	/* of the agent's pty, or -1 */
	int input;	/* the user's terminal to read from, or -1 */
	int output;	/* the user's terminal to write to, or -1 */
	int own_output; /* the same, opened again without blocking; or -1 */
	bool raw;
	struct termios saved;
	struct cordon_screen *screen; /* borrowed: the state of the user's terminal; or NULL */
	struct cordon_flow in, out;
};

/* `streams` says which of 0, 1, 2 are the user's terminal. Takes `master`. Puts the user's terminal into raw mode. */
void cordon_terminal_begin(struct cordon_terminal *terminal, int master, const bool streams[static 3],
			   struct cordon_screen *screen);
/* Fills two entries for poll(); fd is -1 in an entry that is not needed. */
void cordon_terminal_poll(const struct cordon_terminal *terminal, struct pollfd fds[static 2]);
/* Copies what poll() has reported. */
void cordon_terminal_move(struct cordon_terminal *terminal, const struct pollfd fds[static 2]);
/* Shows what the agent has printed by now, as far as the user's terminal takes it without blocking. */
void cordon_terminal_forward(struct cordon_terminal *terminal);
void cordon_terminal_resize(const struct cordon_terminal *terminal);
/* Shows the rest of what the agent has printed, and restores the user's terminal. */
void cordon_terminal_end(struct cordon_terminal *terminal);

#endif
