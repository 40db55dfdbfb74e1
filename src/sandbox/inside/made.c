/* SPDX-License-Identifier: Apache-2.0 */
/* The hand remembers what the run made in directories of boundaries, and knows what was there at the start. */
#include <fcntl.h>
#include <sys/stat.h>

#include "sandbox/inside/made.h"

static size_t slot_of(uint64_t ino)
{
	return (size_t)((ino * 0x9e3779b97f4a7c15ULL) >> 32) % CORDON_MADE_MAX;
}

static size_t next(size_t at)
{
	return (at + 1) % CORDON_MADE_MAX;
}

/*
 * What tells a file from all others that have or had its number: its handle, which has a generation in it, and its time of
 * birth. The time alone is too coarse: within one tick a file of the run can be removed, and the host's next one gets both its
 * number and its time. Where a file system has no handles, the time must do.
 */
static uint64_t mark_of(int fd, const char *name, uint64_t birth)
{
	union {
		struct file_handle handle;
		unsigned char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = { .handle.handle_bytes = MAX_HANDLE_SZ };
	uint64_t mark = birth ^ 0xcbf29ce484222325ULL;
	int mount_id;

	if (name_to_handle_at(fd, name, &u.handle, &mount_id, AT_EMPTY_PATH) < 0)
		return mark;
	for (size_t i = 0; i < u.handle.handle_bytes && i < MAX_HANDLE_SZ; i++)
		mark = (mark ^ u.room[sizeof(u.handle) + i]) * 0x100000001b3ULL;
	return mark;
}

static bool has(const struct cordon_hand_memory *memory, uint64_t ino, uint64_t mark)
{
	for (size_t at = slot_of(ino); memory->made[at].ino; at = next(at))
		if (memory->made[at].ino == ino && memory->made[at].mark == mark)
			return true;
	return false;
}

static bool has_number(const struct cordon_hand_memory *memory, uint64_t ino)
{
	for (size_t at = slot_of(ino); memory->made[at].ino; at = next(at))
		if (memory->made[at].ino == ino)
			return true;
	return false;
}

void cordon_made_add(struct cordon_hand_memory *memory, int fd, const char *name)
{
	struct statx st;
	uint64_t mark;
	size_t at;

	if (statx(fd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO | STATX_BTIME, &st) < 0)
		return;
	mark = mark_of(fd, name, cordon_spot_birth(&st));
	/* A quarter stays free, so that a search is short and ends. What is not remembered can't be changed later. */
	if (memory->n_made >= CORDON_MADE_MAX / 4 * 3 || has(memory, st.stx_ino, mark))
		return;
	for (at = slot_of(st.stx_ino); memory->made[at].ino; at = next(at))
		;
	memory->made[at] = (struct cordon_made){ st.stx_ino, mark };
	memory->n_made++;
}

/* Empties a slot, and moves those behind it that a search would not find any more. */
static void clear(struct cordon_hand_memory *memory, size_t hole)
{
	for (size_t at = next(hole); memory->made[at].ino; at = next(at)) {
		size_t home = slot_of(memory->made[at].ino);

		/* It may stay where the hole does not lie between its home and itself. */
		if ((at - home) % CORDON_MADE_MAX < (at - hole) % CORDON_MADE_MAX)
			continue;
		memory->made[hole] = memory->made[at];
		hole = at;
	}
	memory->made[hole] = (struct cordon_made){ 0 };
	memory->n_made--;
}

void cordon_made_forget(struct cordon_hand_memory *memory, uint64_t ino)
{
	for (size_t at = slot_of(ino); memory->made[at].ino;) {
		if (memory->made[at].ino == ino)
			clear(memory, at);
		else
			at = next(at);
	}
}

/* The values are sorted. */
static bool is_among(const uint64_t *values, size_t n, uint64_t value)
{
	size_t from = 0, to = n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (values[middle] == value)
			return true;
		if (values[middle] < value)
			from = middle + 1;
		else
			to = middle;
	}
	return false;
}

static bool was_there(const struct cordon_plan *plan, const struct cordon_spot *spot)
{
	const struct cordon_held *held = &plan->held[spot->held];
	const char *dir = held->path;
	size_t n = strlen(dir);

	/* A directory that was made in a held one was not there, and nothing in it. */
	if (!*spot->path || strncmp(spot->path, dir, n) != 0 || strchr(spot->path + n + 1, '/'))
		return false;
	/* What the host puts at a name that stood there (git at .git/index, an editor at README.md) is as free as what was
	 * there: nobody saves a boundary by a name that has been there all the time. Temporary names of a boundary are not asked
	 * for here. */
	if (!spot->temp && held->names && is_among(held->names, held->n_entries, cordon_held_name_sum(spot->name)))
		return true;
	if (spot->birth && spot->birth > held->listed_ns)
		return false;
	/* Where the plan did not read all of a large directory, the time alone counts (docs/threat-model.md). */
	return is_among(held->entries, held->n_entries, spot->ino) ||
	       (held->n_entries == CORDON_HELD_ENTRIES_MAX && spot->birth);
}

bool cordon_made_knows(const struct cordon_hand_memory *memory, const struct cordon_plan *plan,
		       const struct cordon_spot *spot)
{
	return (has_number(memory, spot->ino) && has(memory, spot->ino, mark_of(spot->dir_fd, spot->name, spot->birth))) ||
	       was_there(plan, spot);
}
