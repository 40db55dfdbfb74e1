/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor follows control sequences (ECMA-48, and xterm's private modes) in the agent's output, as far as they
 * concern lines and the alternate screen. */
#include "sandbox/host/screen.h"

#define ESC 0x1b
#define BEL 0x07
#define NUMBER_MAX 100000u

enum { TEXT, ESCAPE, CONTROL, PRIVATE, STRING, STRING_ESCAPE };

static void switch_to(struct cordon_screen *screen, bool alternate)
{
	if (screen->alternate == alternate)
		return;
	screen->alternate = alternate;
	if (alternate) {
		screen->was_mid_line = screen->mid_line;
	} else {
		screen->mid_line = screen->was_mid_line;
		screen->left = true;
	}
}

/* Modes 47, 1047 and 1049 all switch to the alternate screen. */
static void end_number(struct cordon_screen *screen)
{
	screen->names_it |= screen->number == 47 || screen->number == 1047 || screen->number == 1049;
	screen->number = 0;
}

static void in_private(struct cordon_screen *screen, unsigned char byte)
{
	if (byte >= '0' && byte <= '9') {
		if (screen->number < NUMBER_MAX)
			screen->number = 10 * screen->number + byte - '0';
		return;
	}
	end_number(screen);
	if (byte == ';')
		return;
	if (screen->names_it && (byte == 'h' || byte == 'l'))
		switch_to(screen, byte == 'h');
	screen->state = TEXT;
}

static void in_escape(struct cordon_screen *screen, unsigned char byte)
{
	if (byte == '[') {
		screen->state = CONTROL;
	} else if (byte == ']' || byte == 'P' || byte == '_' || byte == '^' || byte == 'X') {
		screen->state = STRING; /* such as the title of the window */
	} else if (byte < 0x20 || byte > 0x2f) {
		if (byte == 'c')
			switch_to(screen, false); /* a reset of everything */
		screen->state = TEXT;
	}
}

static void step(struct cordon_screen *screen, unsigned char byte)
{
	switch (screen->state) {
	case TEXT:
		if (byte == ESC)
			screen->state = ESCAPE;
		else if (byte == '\n')
			screen->mid_line = false;
		else if (byte >= 0x20 || byte == '\t')
			screen->mid_line = true;
		break;
	case ESCAPE:
		in_escape(screen, byte);
		break;
	case CONTROL:
		if (byte == '?') {
			screen->state = PRIVATE;
			screen->number = 0;
			screen->names_it = false;
		} else if (byte >= 0x40 && byte <= 0x7e) {
			screen->state = TEXT;
		} else if (byte == ESC) {
			screen->state = ESCAPE;
		}
		break;
	case PRIVATE:
		in_private(screen, byte);
		if (byte == ESC)
			screen->state = ESCAPE;
		break;
	case STRING:
		if (byte == BEL)
			screen->state = TEXT;
		else if (byte == ESC)
			screen->state = STRING_ESCAPE;
		break;
	default: /* ESC \ ends a string; another ESC begins something else */
		screen->state = byte == '\\' ? TEXT : byte == ESC ? STRING_ESCAPE : STRING;
		break;
	}
}

void cordon_screen_update(struct cordon_screen *screen, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		step(screen, (unsigned char)bytes[i]);
}
