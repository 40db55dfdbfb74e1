/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the run may change beside a boundary. A program of the host saves a file that the run may not write by making
 * another one beside it and renaming that. Whoever has the other file has what becomes the boundary. So in a directory
 * where a name is protected, denied or may only be read:
 *   - only what this run made, or what was there when the lens started, can be written, linked, moved, replaced or
 *     removed; so can what stands at a name that was there (git replaces .git/index at each commit of the host): a name
 *     by which something is saved is a new one;
 *   - a temporary name of a boundary that is predictable (AGENTS.md.lock) is made, linked, moved, replaced and removed
 *     by the host alone.
 *
 * Made: number and time of birth, remembered when the lens made the file or moved it in. There at the start: its time
 * of birth lies before. A clock that was set back is noticed: the start is then the same moment by the new clock. Where
 * a file system has no times of birth, what was not changed since the start was there, and from then on its number
 * counts.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/listing.h"
#include "base/path.h"
#include "base/resolve.h"
#include "lens/lens.h"
#include "policy/temp_names.h"

#define MADE_FIRST 1024
#define NAMES_FIRST 256
#define CLOCK_TRIES 16
#define CLOCK_NS 100000	   /* two clocks are compared within this time */
#define CLOCK_STEP 1000000 /* what counts as a step */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* How far the clock of file times is ahead of the one that nobody can set. NTP slows down and speeds up both alike, so
 * only a step changes the difference. */
static int64_t clock_offset(void)
{
	int64_t before = 0, now = 0, after = INT64_MAX;

	for (int i = 0; i < CLOCK_TRIES && after - before > CLOCK_NS; i++) {
		before = clock_ns(CLOCK_BOOTTIME);
		now = clock_ns(CLOCK_REALTIME);
		after = clock_ns(CLOCK_BOOTTIME);
	}
	return now - before;
}

static bool before_start(struct lens *lens, int64_t time)
{
	int64_t offset = clock_offset();

	if (offset < lens->known.offset - CLOCK_STEP)
		lens->known.offset = offset;
	return time <= lens->known.started + lens->known.offset;
}

static size_t slot_of(const struct lens_known *known, const struct lens_id *id)
{
	return (size_t)(((id->ino ^ id->dev) * 0x9e3779b97f4a7c15u) >> 24) & (known->size - 1);
}

/* The slot of the file, or the free one where it would be. */
static size_t find(const struct lens_known *known, const struct lens_id *id)
{
	size_t at = slot_of(known, id);

	while (known->made[at].ino && !lens_id_equal(&known->made[at], id))
		at = (at + 1) & (known->size - 1);
	return at;
}

static bool grow(struct lens_known *known)
{
	struct lens_known larger = { .size = known->size ? 2 * known->size : MADE_FIRST, .n_made = known->n_made };

	if (known->n_made < known->size / 4 * 3)
		return true;
	larger.made = larger.size > LENS_MADE_MAX ? NULL : calloc(larger.size, sizeof(*larger.made));
	if (!larger.made)
		return false;
	for (size_t i = 0; i < known->size; i++)
		if (known->made[i].ino)
			larger.made[find(&larger, &known->made[i])] = known->made[i];
	free(known->made);
	known->made = larger.made;
	known->size = larger.size;
	return true;
}

/* Without memory the file is forgotten, and the run can't change it later. */
static void add(struct lens_known *known, const struct lens_id *id)
{
	size_t at;

	if (!id->ino || !grow(known))
		return;
	at = find(known, id);
	known->n_made += !known->made[at].ino;
	known->made[at] = *id;
}

void lens_known_drop(struct lens *lens, const struct lens_id *id)
{
	struct lens_known *known = &lens->known;
	size_t hole, mask = known->size - 1;

	if (!known->size || !known->made[hole = find(known, id)].ino)
		return;
	/* Move up what would not be found any more behind a free slot. */
	for (size_t at = (hole + 1) & mask; known->made[at].ino; at = (at + 1) & mask) {
		size_t wanted = slot_of(known, &known->made[at]);

		if (((at - wanted) & mask) < ((at - hole) & mask))
			continue;
		known->made[hole] = known->made[at];
		hole = at;
	}
	known->made[hole] = (struct lens_id){ 0 };
	known->n_made--;
}

/* Whether the path names something directly in a directory of n bytes. */
static bool is_in(const char *path, const char *dir, size_t n)
{
	const char *base = cordon_path_base(path);

	return (size_t)(base - path) == (n ? n + 1 : 0) && memcmp(path, dir, n) == 0;
}

/* Whether a denial, or a folder or file that may only be read, may have a name directly in the directory. */
static bool may_stand_in(const struct cordon_grant *grant, const char *dir, size_t n)
{
	bool names = false;

	if (grant->access == CORDON_ACCESS_WRITE)
		return false;
	for (size_t i = 0; i < cordon_pattern_alternatives(grant->pattern); i++) {
		const char *literal = cordon_pattern_literal(grant->pattern, i);

		if (literal && *literal && is_in(literal, dir, n))
			return true;
		names |= !literal;
	}
	return names && grant->access == CORDON_ACCESS_NONE && cordon_pattern_leads(grant->pattern, dir);
}

static bool is_boundary_dir(const struct lens *lens, const char *dir, size_t n)
{
	const struct cordon_policy *part, *policy = lens->policy;

	for (size_t i = 0; i < policy->n_protected; i++) {
		const struct cordon_protected *protected = &policy->protected_paths[i];

		if (is_in(protected->path, dir, n) || (protected->target && is_in(protected->target, dir, n)))
			return true;
	}
	for (size_t i = 0; (part = cordon_policy_part(policy, i)); i++)
		for (size_t k = 0; k < part->n_grants; k++)
			if (may_stand_in(&part->grants[k], dir, n))
				return true;
	return false;
}

static bool any_name(void *data, const char *name, size_t n)
{
	(void)data;
	(void)name;
	return n > 0;
}

/* Whether only what is known may be changed at the path: beside a boundary; and where a scope judges names, what looks
 * like the temporary name of any file. */
static bool is_beside(const struct lens *lens, const char *path)
{
	const char *name = cordon_path_base(path);
	char dir[CORDON_PATH_MAX];
	size_t n = name > path ? (size_t)(name - path) - 1 : 0;

	if (cordon_copy(dir, sizeof(dir), path, n) < 0 || is_boundary_dir(lens, dir, n))
		return true;
	return (cordon_temp_of_any(name) || cordon_temp_of_name(name, false, any_name, NULL)) &&
	       !lens_judge_uniform(lens, dir);
}

void lens_known_made(struct lens *lens, const char *path, const struct statx *stx)
{
	struct lens_id id = lens_id_of(stx);

	if (!lens_in_view() && is_beside(lens, path))
		add(&lens->known, &id);
}

struct beside {
	const struct lens *lens;
	const char *path;
	int dir_fd;
	char *boundary;
};

/* Whether the run may not write what has this name. Names that no rule is about must be there: with a scope of patterns
 * every other name is out of scope. */
static bool is_boundary(void *data, const char *name, size_t n)
{
	const struct beside *beside = data;
	size_t dir = (size_t)(cordon_path_base(beside->path) - beside->path);
	char path[CORDON_PATH_MAX];
	struct stat st;

	if (dir + n >= sizeof(path) || n > NAME_MAX || cordon_copy(beside->boundary, NAME_MAX + 1, name, n) < 0 ||
	    cordon_streq(beside->boundary, ".") || cordon_streq(beside->boundary, ".."))
		return false;
	memcpy(path, beside->path, dir);
	memcpy(path + dir, beside->boundary, n + 1);
	return lens_judge_forbidden(beside->lens, path) ||
	       (lens_judge(beside->lens, path) != LENS_WRITE &&
		fstatat(beside->dir_fd, beside->boundary, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

bool lens_temp_of_boundary(const struct lens *lens, int dir_fd, const char *path, char ret[static NAME_MAX + 1])
{
	struct beside beside = { lens, path, dir_fd, ret };

	return cordon_temp_predictable(cordon_path_base(path), is_boundary, &beside);
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x100000001b3u;
}

static uint64_t sum_of(const struct lens_id *dir, const char *name)
{
	uint64_t sum = mix(mix(mix(0xcbf29ce484222325u, dir->dev), dir->ino), (uint64_t)dir->born);

	for (; *name; name++)
		sum = mix(sum, (unsigned char)*name);
	return sum;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The directories that are listed at the start. */
struct start {
	struct lens *lens;
	struct {
		const char *path; /* of a boundary in it */
		size_t n;
	} dirs[LENS_LISTED_DIRS];
	size_t n_dirs, room;
};

static bool is_listed(const struct start *start, const char *path, size_t n)
{
	for (size_t i = 0; i < start->n_dirs; i++)
		if (start->dirs[i].n == n && memcmp(start->dirs[i].path, path, n) == 0)
			return true;
	return false;
}

/* Without memory the name is forgotten, and what the host puts there the run can't change. */
static bool add_name(struct start *start, uint64_t sum)
{
	struct lens_known *known = &start->lens->known;

	if (known->n_names == start->room) {
		size_t room = start->room ? 2 * start->room : NAMES_FIRST;
		uint64_t *names = reallocarray(known->names, room, sizeof(*names));

		if (!names)
			return false;
		known->names = names;
		start->room = room;
	}
	known->names[known->n_names++] = sum;
	return true;
}

/* Lists the directory of a boundary, if it is there. */
static void list_dir_of(struct start *start, const char *boundary)
{
	size_t n = (size_t)(cordon_path_base(boundary) - boundary);
	CORDON_UNCLEARED struct cordon_listing listing;
	CORDON_UNCLEARED char dir[CORDON_PATH_MAX];
	const struct dirent64 *entry;
	autofd int fd = -1;
	struct lens_id id;
	struct statx stx;

	n -= n > 0;
	if (start->n_dirs == LENS_LISTED_DIRS || is_listed(start, boundary, n) ||
	    cordon_copy(dir, sizeof(dir), boundary, n) < 0)
		return;
	fd = cordon_open_beneath(start->lens->root_fd, dir, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || lens_stat(fd, "", &stx) < 0)
		return;
	start->dirs[start->n_dirs].path = boundary;
	start->dirs[start->n_dirs++].n = n;
	id = lens_id_of(&stx);
	cordon_listing_init(&listing, fd);
	for (size_t i = 0; i < LENS_LISTED_NAMES && (entry = cordon_listing_next(&listing)); i++)
		if (!add_name(start, sum_of(&id, entry->d_name)))
			return;
}

/* Only names without a pattern have a known place: a pattern may match in every directory, and none is listed for
 * it. */
static void list_dirs_of_grant(struct start *start, const struct cordon_grant *grant)
{
	if (grant->access == CORDON_ACCESS_WRITE)
		return;
	for (size_t i = 0; i < cordon_pattern_alternatives(grant->pattern); i++) {
		const char *literal = cordon_pattern_literal(grant->pattern, i);

		if (literal && *literal)
			list_dir_of(start, literal);
	}
}

void lens_known_init(struct lens *lens)
{
	const struct cordon_policy *part, *policy = lens->policy;
	struct start start = { .lens = lens };

	lens->known.offset = clock_offset();
	lens->known.started = clock_ns(CLOCK_BOOTTIME);
	if (lens_in_view())
		return;
	for (size_t i = 0; i < policy->n_protected; i++) {
		list_dir_of(&start, policy->protected_paths[i].path);
		if (policy->protected_paths[i].target)
			list_dir_of(&start, policy->protected_paths[i].target);
	}
	for (size_t i = 0; (part = cordon_policy_part(policy, i)); i++)
		for (size_t k = 0; k < part->n_grants; k++)
			list_dirs_of_grant(&start, &part->grants[k]);
	if (lens->known.n_names)
		qsort(lens->known.names, lens->known.n_names, sizeof(*lens->known.names), by_value);
}

/* Whether the file stands at a name that was there when the lens started, and that is no temporary name of a boundary.
 * The file is looked for again in the directory that is asked about, because the host may move directories. */
static bool is_at_known_name(const struct lens *lens, const char *path, const struct lens_id *id)
{
	const struct lens_known *known = &lens->known;
	const char *name = cordon_path_base(path);
	char dir[CORDON_PATH_MAX], boundary[NAME_MAX + 1];
	struct lens_id found;
	autofd int fd = -1;
	struct statx stx;
	uint64_t sum;

	if (!known->n_names || cordon_copy(dir, sizeof(dir), path, name > path ? (size_t)(name - path) - 1 : 0) < 0)
		return false;
	fd = cordon_open_beneath(lens->root_fd, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || lens_stat(fd, "", &stx) < 0)
		return false;
	found = lens_id_of(&stx);
	sum = sum_of(&found, name);
	if (!bsearch(&sum, known->names, known->n_names, sizeof(sum), by_value) || lens_stat(fd, name, &stx) < 0)
		return false;
	found = lens_id_of(&stx);
	return lens_id_equal(&found, id) && !lens_temp_of_boundary(lens, fd, path, boundary);
}

bool lens_known(struct lens *lens, const char *path, const struct statx *stx)
{
	struct lens_id id = lens_id_of(stx);
	bool known;

	/* Nobody but the run changes a view. */
	if (lens_in_view())
		return true;
	if (lens->known.size && lens->known.made[find(&lens->known, &id)].ino)
		return true;
	if (id.born)
		return before_start(lens, id.born) || !is_beside(lens, path) || is_at_known_name(lens, path, &id);
	if (!is_beside(lens, path))
		return true;
	known = before_start(lens, (int64_t)stx->stx_ctime.tv_sec * 1000000000 + stx->stx_ctime.tv_nsec);
	if (known)
		add(&lens->known, &id);
	return known || is_at_known_name(lens, path, &id);
}
