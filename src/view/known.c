/* SPDX-License-Identifier: Apache-2.0 */
/* The list of files that apply or undo left behind. */
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "view/internal.h"
#include "view/journal_steps.h"
#include "view/known.h"

#define KNOWN "known"
#define KNOWN_MAX ((size_t)256 << 20)

void cordon_known_done(struct cordon_known *known)
{
	cordon_arena_free(known->arena);
	free(known->files);
	*known = (struct cordon_known){ 0 };
}

static int add(struct cordon_known *known, const char *path, const struct cordon_ident *ident)
{
	if (known->n == known->cap) {
		size_t cap = known->cap ? 2 * known->cap : 64;
		struct cordon_known_file *more = reallocarray(known->files, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		known->files = more;
		known->cap = cap;
	}
	known->files[known->n] = (struct cordon_known_file){
		.path = cordon_arena_strdup(known->arena, path),
		.ident = *ident,
	};
	return known->files[known->n].path ? (known->n++, 0) : -ENOMEM;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct cordon_known_file *)a)->path, ((const struct cordon_known_file *)b)->path);
}

/* Each entry is a line of numbers and then the path, each with a NUL. */
static int read_entry(struct cordon_known *known, const struct cordon_view_devices *devices, const char **at,
		      const char *end)
{
	unsigned long long dev, ino, size;
	long long mtime, ctime;
	long mtime_ns, ctime_ns;
	unsigned int mode;
	const char *path = *at + strlen(*at) + 1;
	struct cordon_ident ident;

	/* NOLINTNEXTLINE(cert-err34-c): we wrote it, and a number that does not fit is no file's. */
	if (path >= end || sscanf(*at, "%o %llu %llu %llu %lld %ld %lld %ld", &mode, &dev, &ino, &size, &mtime,
				  &mtime_ns, &ctime, &ctime_ns) != 8)
		return -EBADMSG;
	ident = (struct cordon_ident){ .mode = mode,
				       .dev = cordon_view_renumber(devices, dev),
				       .ino = ino,
				       .size = size,
				       .mtime = { mtime, mtime_ns },
				       .ctime = { ctime, ctime_ns } };
	*at = path + strlen(path) + 1;
	return add(known, path, &ident);
}

void cordon_known_load(int view_fd, const struct cordon_view_devices *devices, struct cordon_known *ret_known)
{
	autobuf struct cordon_buf text = CORDON_BUF(KNOWN_MAX);
	struct cordon_known known = { .arena = cordon_arena_new() };

	if (known.arena && cordon_read_file(view_fd, KNOWN, O_NOFOLLOW, &text, NULL) == 0 && text.len &&
	    text.data[text.len - 1] == '\0')
		for (const char *at = text.data; at < text.data + text.len;)
			if (read_entry(&known, devices, &at, text.data + text.len) < 0) {
				known.n = 0;
				break;
			}
	if (known.n)
		qsort(known.files, known.n, sizeof(*known.files), by_path);
	*ret_known = known;
}

const struct cordon_ident *cordon_known_find(const struct cordon_known *known, const char *path)
{
	const struct cordon_known_file key = { .path = path };
	const struct cordon_known_file *found = known->n ? bsearch(&key, known->files, known->n, sizeof(key), by_path)
							 : NULL;

	return found ? &found->ident : NULL;
}

bool cordon_known_has(const struct cordon_known *known, const char *path, const struct cordon_ident *ident)
{
	const struct cordon_ident *found = cordon_known_find(known, path);

	return found && cordon_ident_same(found, ident) &&
	       (S_ISDIR(ident->mode) ||
		(found->ctime.tv_sec == ident->ctime.tv_sec && found->ctime.tv_nsec == ident->ctime.tv_nsec));
}

static int write_entries(int view_fd, const struct cordon_view_devices *devices, const struct cordon_known *known,
			 bool durable)
{
	autobuf struct cordon_buf text = CORDON_BUF(KNOWN_MAX);
	int r = 0;

	for (size_t i = 0; r == 0 && i < known->n; i++) {
		const struct cordon_ident *ident = &known->files[i].ident;

		r = cordon_buf_addf(&text, "%o %llu %llu %llu %lld %ld %lld %ld", ident->mode,
				    (unsigned long long)cordon_view_renumber(devices, ident->dev),
				    (unsigned long long)ident->ino, (unsigned long long)ident->size,
				    (long long)ident->mtime.tv_sec, ident->mtime.tv_nsec,
				    (long long)ident->ctime.tv_sec, ident->ctime.tv_nsec);
		if (r == 0)
			r = cordon_buf_addc(&text, '\0');
		if (r == 0)
			r = cordon_buf_add(&text, known->files[i].path, strlen(known->files[i].path) + 1);
	}
	if (r < 0)
		return r;
	return (durable ? cordon_write_file : cordon_write_file_unsynced)(view_fd, KNOWN, 0600,
									  text.data ? text.data : "", text.len, NULL);
}

/* What a step left, if it is the view's business: what the host had changed before stays the host's. */
static bool find_left(const struct cordon_apply_journal *journal, const struct cordon_apply_step *step, bool forward,
		      struct cordon_ident *ret)
{
	const struct cordon_ident *wanted = forward ? &step->new : &step->old;

	if (step->edited || !wanted->mode || (forward && !step->part) ||
	    (step->kind != CORDON_APPLY_STEP_SWAP &&
	     step->kind != (forward ? CORDON_APPLY_STEP_PUT : CORDON_APPLY_STEP_TAKE)))
		return false;
	if (cordon_apply_steps_look(journal, step->path, ret) < 0)
		return false;
	/* A directory comes back as a new one. */
	return cordon_ident_same(ret, wanted) || (S_ISDIR(ret->mode) && S_ISDIR(wanted->mode));
}

/* Adds to the file of a view what is in `left`, in the place of older entries. */
static void merge_entries(int view_fd, const struct cordon_view_devices *devices, struct cordon_known *left,
			  bool durable)
{
	autoknown struct cordon_known known = { 0 };
	size_t sorted = left->n; /* what is added below lies behind it */

	if (!left->n)
		return;
	qsort(left->files, left->n, sizeof(*left->files), by_path);
	cordon_known_load(view_fd, devices, &known);
	for (size_t i = 0; i < known.n; i++) {
		const struct cordon_known_file key = { .path = known.files[i].path };

		if (!bsearch(&key, left->files, sorted, sizeof(key), by_path) &&
		    add(left, key.path, &known.files[i].ident) < 0)
			return;
	}
	write_entries(view_fd, devices, left, durable);
}

void cordon_known_add(int view_fd, const struct cordon_apply_journal *journal, bool forward)
{
	autoknown struct cordon_known left = { .arena = cordon_arena_new() };
	struct cordon_view_devices devices;

	for (size_t i = 0; left.arena && i < journal->n; i++) {
		struct cordon_ident ident;

		if (find_left(journal, &journal->steps[i], forward, &ident) &&
		    add(&left, journal->steps[i].path, &ident) < 0)
			return;
	}
	cordon_view_devices(journal->view, journal->root_fd, &devices);
	merge_entries(view_fd, &devices, &left, true);
}

/* Whether the host's side of a change is worth a note: the mode of what both sides have, and which directory it is. */
static bool is_noted(const struct cordon_delta_change *change)
{
	if (S_ISDIR(change->old.mode))
		return !change->edited && !change->of_layer;
	return !change->edited && S_ISREG(change->old.mode) && change->base_mode;
}

void cordon_known_note(int view_fd, const struct cordon_view_devices *devices, const struct cordon_delta *delta)
{
	autoknown struct cordon_known noted = { .arena = cordon_arena_new() };

	for (size_t i = 0; noted.arena && i < delta->n; i++) {
		const struct cordon_delta_change *change = &delta->changes[i];
		struct cordon_ident ident = change->old;

		if (change->base_mode)
			ident.mode = change->base_mode;
		/* A new file in a directory in which the host works later would look like one that the host removed. */
		if ((change->fresh || is_noted(change)) && add(&noted, change->path, &ident) < 0)
			return;
	}
	/* The end of a run does not wait for the disk once more: a note that a power cut takes away counts as none. */
	merge_entries(view_fd, devices, &noted, false);
}
