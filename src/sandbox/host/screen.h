/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps track of the state in which the agent's output has left the user's terminal: in the middle of a line, or with
 * the alternate screen of a full-screen program. So cordon can begin its own messages on a new line, and not write into
 * the program's screen.
 */
#ifndef CORDON_SANDBOX_HOST_SCREEN_H
#define CORDON_SANDBOX_HOST_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

struct cordon_screen {
	bool mid_line;	/* the last line has no end yet */
	bool alternate; /* a program shows the alternate screen */
	bool left;	/* a program has left the alternate screen since this was last reset */
	/* The state of the parser, because a sequence may come in pieces. */
	bool was_mid_line; /* mid_line when the alternate screen began: the cursor goes back there */
	bool names_it;	   /* one of the numbers in the sequence means the alternate screen */
	unsigned char state;
	unsigned int number;
};

/* Updates the state with bytes that the terminal has shown. */
void cordon_screen_update(struct cordon_screen *screen, const char *bytes, size_t n);

#endif
