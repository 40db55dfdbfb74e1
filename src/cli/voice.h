/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said on stderr while an agent runs, which writes there too, and may have filled what nobody reads. A report is
 * one piece, and saying it never makes the supervisor wait: what stderr does not take now waits here, up to a bound.
 */
#ifndef CORDON_CLI_VOICE_H
#define CORDON_CLI_VOICE_H

#include "cli/cli.h"

#define CORDON_VOICE_WAITING_MAX (1u << 20)

struct cordon_voice {
	const struct cordon_cli *cli; /* NULL, or with --json: says nothing */
	struct cordon_buf piece;      /* being put together */
	struct cordon_buf waiting;
	unsigned int left_out; /* pieces for which there was no room */
	int terminal;	       /* stderr again, if it is a terminal; else -1 */
};

void cordon_voice_init(struct cordon_voice *voice, const struct cordon_cli *cli);
/* Says what still waits, now waiting for stderr. */
void cordon_voice_done(struct cordon_voice *voice);

/* One more line of the piece: "[TAG] ...", control characters escaped. */
void cordon_voice_line(struct cordon_voice *voice, const char *tag, const char *fmt, ...) CORDON_PRINTF(3, 4);
/* Says the piece. */
void cordon_voice_say(struct cordon_voice *voice);
/* Waits until stderr has taken everything. For when nothing else is left to be done. */
void cordon_voice_flush(struct cordon_voice *voice);

#endif
