/* SPDX-License-Identifier: Apache-2.0 */
/* A digest of what a person looked at. */
#include "view/shown.h"

#include <sodium.h>

#include "view/show.h"

#define HASH_BYTES 32
#define SETTLE_STEPS 1100 /* of a millisecond each; the least exact file times are whole seconds */

_Static_assert(CORDON_SHOWN_SIZE == 2 * HASH_BYTES + 1, "the digest as hexadecimal text");

typedef crypto_generichash_state hash_state;

static void add_number(hash_state *hash, uint64_t number)
{
	crypto_generichash_update(hash, (const unsigned char *)&number, sizeof(number));
}

/* With its NUL, so that no two lists of texts are alike. */
static void add_text(hash_state *hash, const char *text)
{
	crypto_generichash_update(hash, (const unsigned char *)text, strlen(text) + 1);
}

static void add_time(hash_state *hash, const struct timespec *time)
{
	add_number(hash, (uint64_t)time->tv_sec);
	add_number(hash, (uint64_t)time->tv_nsec);
}

/* A directory has other times whenever something else in it changes, and that was not shown. Whoever reads a file of a
 * layer may change the time of its status, and that is why `exact` is for files of the host only. */
static void add_ident(hash_state *hash, const struct cordon_ident *ident, bool exact)
{
	add_number(hash, ident->mode);
	add_number(hash, ident->dev);
	add_number(hash, ident->ino);
	if (S_ISDIR(ident->mode))
		return;
	add_number(hash, ident->size);
	add_time(hash, &ident->mtime);
	if (exact)
		add_time(hash, &ident->ctime);
}

static void begin(hash_state *hash, const char *what)
{
	/* This hash needs no sodium_init(), which would only choose faster code. */
	crypto_generichash_init(hash, NULL, 0, HASH_BYTES);
	add_text(hash, what);
}

static void end(hash_state *hash, char ret_shown[static CORDON_SHOWN_SIZE])
{
	unsigned char bytes[HASH_BYTES];

	crypto_generichash_final(hash, bytes, sizeof(bytes));
	sodium_bin2hex(ret_shown, CORDON_SHOWN_SIZE, bytes, sizeof(bytes));
}

void cordon_shown_delta(const struct cordon_view *view, const struct cordon_delta *delta,
			char ret_shown[static CORDON_SHOWN_SIZE])
{
	hash_state hash;

	begin(&hash, "changes");
	add_text(&hash, view->record.id);
	for (size_t i = 0; i < delta->n; i++) {
		const struct cordon_delta_change *change = &delta->changes[i];

		if (!cordon_delta_shown(change, NULL, 0))
			continue;
		add_number(&hash, i);
		add_text(&hash, change->path);
		add_number(&hash, change->kind);
		add_number(&hash, change->edited);
		add_ident(&hash, &change->old, !delta->stacked);
		add_ident(&hash, &change->new, false);
	}
	for (size_t i = 0; i < delta->n_left; i++)
		add_text(&hash, delta->left[i].path);
	end(&hash, ret_shown);
}

void cordon_shown_journal(const struct cordon_apply_journal *journal, char ret_shown[static CORDON_SHOWN_SIZE])
{
	hash_state hash;

	begin(&hash, "undo");
	add_text(&hash, journal->view->record.id);
	for (size_t i = 0; i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];

		add_text(&hash, step->path);
		add_number(&hash, step->kind);
		add_ident(&hash, &step->old, false);
		add_ident(&hash, &step->new, false);
	}
	end(&hash, ret_shown);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

void cordon_shown_settle(const struct cordon_delta *delta)
{
	struct timespec last = { 0 }, now;

	for (size_t i = 0; i < delta->n; i++)
		if (cordon_delta_shown(&delta->changes[i], NULL, 0) && is_later(&delta->changes[i].old.ctime, &last))
			last = delta->changes[i].old.ctime;
	/* A file system that keeps whole seconds cuts the rest off. */
	if (last.tv_nsec == 0)
		last.tv_nsec = 999999999;
	for (int i = 0; i < SETTLE_STEPS; i++) {
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		if (is_later(&now, &last) || last.tv_sec - now.tv_sec > 1)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}
