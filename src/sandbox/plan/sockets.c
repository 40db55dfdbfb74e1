/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks the host's sockets and FIFOs in what the agent may only read. A read-only mount does not stop their use:
 * connecting to one, or writing into one, changes nothing in the file system, and Landlock has no right for it up to
 * ABI 7. The agent could use a service of the host that listens in a directory which the agent may only read. So we
 * mask those that we find in protected directories and in what is granted or shared for reading.
 *
 * The search is bounded, and goes breadth first because such sockets lie near the top; a note says where it ended. It
 * covers neither what the host makes later nor what the agent may write: docs/threat-model.md says so.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/resolve.h"
#include "sandbox/plan/plan.h"

#define ENTRIES_MAX 1024 /* the search looks at no more than this in one run */

struct search {
	struct cordon_plan *plan;
	size_t entries;
	size_t n_steps; /* before we added masks */
	/* A ring of the directories that are still to be read, as paths below the mounted one. It has room for
	 * ENTRIES_MAX. */
	const char *dirs[ENTRIES_MAX + 1];
	size_t first, n;
	bool stopped;
};

/* Whether something else is mounted there: it has a search of its own, or the agent may do more than read it. */
static bool is_mounted(const struct search *search, const char *inside)
{
	for (size_t i = 0; i < search->n_steps; i++) {
		const struct cordon_step *step = &search->plan->steps[i];

		if ((step->kind == CORDON_STEP_BIND || step->kind == CORDON_STEP_MASK ||
		     step->kind == CORDON_STEP_PRIVATE) &&
		    cordon_streq(step->path, inside))
			return true;
	}
	return false;
}

static int push(struct search *search, const char *path)
{
	const char *copy = cordon_arena_strdup(search->plan->arena, path);

	if (!copy)
		return -ENOMEM;
	search->dirs[(search->first + search->n++) % CORDON_ARRAY_SIZE(search->dirs)] = copy;
	return 0;
}

/* Whether this is one of the 256 directories in which git keeps single objects: ".../.git/objects/5f". */
static bool is_single_objects(const char *path)
{
	static const char parent[] = "/.git/objects/";
	size_t n = strlen(path), n_parent = sizeof(parent) - 1;

	return n > n_parent + 2 && strspn(path + n - 2, "0123456789abcdef") == 2 &&
	       strncmp(path + n - 2 - n_parent, parent, n_parent) == 0;
}

static int examine_entry(struct search *search, const char *top, int dir_fd, const char *dir, const struct dirent *entry)
{
	char path[CORDON_PATH_MAX], inside[CORDON_PATH_MAX];
	unsigned char type = entry->d_type;
	struct cordon_step *mask;
	struct stat st;

	if (type == DT_UNKNOWN && fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		type = (unsigned char)IFTODT(st.st_mode);
	if (type != DT_DIR && type != DT_SOCK && type != DT_FIFO)
		return 0;
	if (cordon_path_join(dir, entry->d_name, path, sizeof(path)) < 0 ||
	    cordon_path_join(top, path, inside, sizeof(inside)) < 0)
		return 0; /* longer than any path that could be used */
	if (is_mounted(search, inside))
		return 0;
	/* Git's single objects would use up the names that the search looks at. */
	if (type == DT_DIR && is_single_objects(inside))
		return 0;
	if (type == DT_DIR)
		return push(search, path);
	if (!(mask = cordon_plan_step(search->plan, CORDON_STEP_MASK, inside)))
		return -ENOMEM;
	mask->flags = CORDON_STEP_IF_THERE;
	return 0;
}

static int read_dir(struct search *search, const char *top, const char *source, const char *dir)
{
	const char *way = source;
	int anchor = cordon_plan_anchor(search->plan, &way);
	char path[CORDON_PATH_MAX];
	DIR *stream = NULL;
	int fd, r = 0;

	if (cordon_path_join(way, dir, path, sizeof(path)) < 0)
		return 0;
	fd = cordon_open_beneath(anchor, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !(stream = fdopendir(fd)))
		close(fd);
	/* Nothing is masked in a directory that we can't list. The agent can't list it either, but it may know a name
	 * in it. */
	for (struct dirent *entry; r == 0 && stream && (entry = readdir(stream));) {
		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (search->entries++ >= ENTRIES_MAX) {
			search->stopped = true;
			break;
		}
		r = examine_entry(search, top, dirfd(stream), dir, entry);
	}
	if (stream)
		closedir(stream);
	return r;
}

static int search_tree(struct search *search, const char *top, const char *source)
{
	int r = push(search, "");

	while (r == 0 && search->n && !search->stopped) {
		const char *dir = search->dirs[search->first];

		search->first = (search->first + 1) % CORDON_ARRAY_SIZE(search->dirs);
		search->n--;
		r = read_dir(search, top, source, dir);
	}
	if (r == 0 && search->stopped)
		r = cordon_plan_note(
			search->plan,
			"%s: only the first %d names were looked at for sockets and FIFOs of the host, which reading alone "
			"does not rule out",
			top, ENTRIES_MAX);
	return r;
}

int cordon_plan_sockets(struct cordon_plan *plan, struct cordon_error *err)
{
	const unsigned int wanted = CORDON_STEP_READ_ONLY | CORDON_STEP_IS_DIR;
	const unsigned int unwanted = CORDON_STEP_SYSTEM | CORDON_STEP_NO_SOCKETS;
	struct search *search = calloc(1, sizeof(*search));
	int r = search ? 0 : -ENOMEM;

	if (search) {
		search->plan = plan;
		search->n_steps = plan->n_steps;
	}
	for (size_t i = 0; r == 0 && i < search->n_steps && !search->stopped; i++) {
		const struct cordon_step *step = &plan->steps[i];

		/* We leave out the system's directories and what a learning run sees of the host: they belong to the
		 * administrator. */
		if (step->kind == CORDON_STEP_BIND && (step->flags & (wanted | unwanted)) == wanted &&
		    ((step->flags & CORDON_STEP_SHARE) || cordon_path_within(step->path, plan->at)))
			r = search_tree(search, step->path, step->source);
	}
	free(search);
	return r < 0 ? cordon_fail_errno(err, r, "plan") : 0;
}
