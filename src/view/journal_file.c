/* SPDX-License-Identifier: Apache-2.0 */
/* The list of steps of a journal: in memory, as text, and compared with the root before an undo. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/path.h"
#include "view/internal.h"
#include "view/journal_steps.h"

#define HEADER_ANY "cordon-journal "
#define HEADER "cordon-journal 2"
#define HEADER_WHOLE "cordon-journal 2 whole"
#define FIRST_HEADER "cordon-journal 1"
#define FIRST_HEADER_WHOLE "cordon-journal 1 whole"

int cordon_apply_journal_add(struct cordon_apply_journal *journal, const struct cordon_apply_step *step,
			     struct cordon_error *err)
{
	char *path = cordon_arena_strdup(journal->arena, step->path);

	if (path && journal->n == journal->cap) {
		size_t cap = journal->cap ? 2 * journal->cap : 64;
		struct cordon_apply_step *more = reallocarray(journal->steps, cap, sizeof(*more));

		if (!more)
			return cordon_no_memory(err);
		journal->steps = more;
		journal->cap = cap;
	}
	if (!path)
		return cordon_no_memory(err);
	journal->steps[journal->n] = *step;
	journal->steps[journal->n++].path = path;
	return 0;
}

static int add_ident(struct cordon_buf *buf, const struct cordon_ident *ident, const struct cordon_view_devices *devices)
{
	return cordon_buf_addf(buf, " %o %llu %llu %llu %lld %ld", ident->mode,
			       (unsigned long long)cordon_view_renumber(devices, ident->dev),
			       (unsigned long long)ident->ino, (unsigned long long)ident->size,
			       (long long)ident->mtime.tv_sec, ident->mtime.tv_nsec);
}

int cordon_apply_journal_write(const struct cordon_apply_journal *journal, struct cordon_buf *buf)
{
	int r = journal->whole ? cordon_buf_add(buf, HEADER_WHOLE, sizeof(HEADER_WHOLE))
			       : cordon_buf_add(buf, HEADER, sizeof(HEADER));
	struct cordon_view_devices devices;

	cordon_view_devices(journal->view, journal->root_fd, &devices);
	for (size_t i = 0; r == 0 && i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];

		r = cordon_buf_addf(buf, "%c %u %d", (char)step->kind, step->n, step->edited | step->part << 1);
		if (r == 0)
			r = add_ident(buf, &step->old, &devices);
		if (r == 0)
			r = add_ident(buf, &step->new, &devices);
		if (r == 0)
			r = cordon_buf_add(buf, "", 1);
		if (r == 0)
			r = cordon_buf_add(buf, step->path, strlen(step->path) + 1);
	}
	return r == 0 ? cordon_buf_add(buf, "end", 4) : r;
}

static int read_ident(const char **text, const struct cordon_view_devices *devices, struct cordon_ident *ret)
{
	unsigned long long dev, ino, size;
	unsigned int mode;
	long long sec;
	long nsec;
	int used = 0;

	if (sscanf(*text, " %o %llu %llu %llu %lld %ld%n", &mode, &dev, &ino, &size, &sec, &nsec, &used) != 6)
		return -EBADMSG;
	*text += used;
	*ret = (struct cordon_ident){
		.mode = mode, .dev = cordon_view_renumber(devices, dev), .ino = ino, .size = size, .mtime = { sec, nsec }
	};
	return 0;
}

int cordon_apply_journal_read(struct cordon_apply_journal *journal, const struct cordon_buf *buf, bool *ret_first,
			      struct cordon_error *err)
{
	const char *at = buf->data, *end = buf->data + buf->len;
	struct cordon_view_devices devices;

	cordon_view_devices(journal->view, journal->root_fd, &devices);
	if (buf->len < sizeof(HEADER) || end[-1] != '\0')
		return -EBADMSG;
	*ret_first = cordon_streq(at, FIRST_HEADER) || cordon_streq(at, FIRST_HEADER_WHOLE);
	journal->whole = cordon_streq(at, HEADER_WHOLE) || cordon_streq(at, FIRST_HEADER_WHOLE);
	if (!*ret_first && !journal->whole && !cordon_streq(at, HEADER))
		return strncmp(at, HEADER_ANY, strlen(HEADER_ANY)) == 0 ? -EPROTO : -EBADMSG;
	for (at += strlen(at) + 1; at < end && !cordon_streq(at, "end");) {
		struct cordon_apply_step step = { 0 };
		const char *text = at;
		unsigned int n;
		char kind;
		int used = 0, flags, r;

		if (sscanf(text, "%c %u %d%n", &kind, &n, &flags, &used) != 3 || !strchr("sptmo", kind))
			return -EBADMSG;
		text += used;
		step.kind = (cordon_apply_step_kind)kind;
		step.n = n;
		step.edited = flags & 1;
		step.part = flags & 2;
		if (read_ident(&text, &devices, &step.old) < 0 || read_ident(&text, &devices, &step.new) < 0 || *text)
			return -EBADMSG;
		at = text + 1;
		if (at >= end)
			return -EBADMSG;
		step.path = at;
		at += strlen(at) + 1;
		r = cordon_apply_journal_add(journal, &step, err);
		if (r < 0)
			return r;
		if (step.n >= journal->next)
			journal->next = step.n + 1;
	}
	return at < end ? 0 : -EBADMSG;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Reports what the host put into a directory that the change made. */
static int find_strangers(const struct cordon_apply_journal *journal, const char *dir, const char **ours, size_t n,
			  void (*met)(void *data, const char *path), void *data)
{
	int fd = cordon_open_beneath(journal->root_fd, dir, CORDON_OPEN_DIR);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list) {
		if (fd >= 0)
			close(fd);
		return fd == -ENOENT || fd == -EACCES || fd >= 0 ? 0 : fd;
	}
	for (struct dirent *entry; (entry = readdir(list));) {
		char path[CORDON_PATH_MAX];
		const char *key = path;

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, "..") ||
		    cordon_path_join(dir, entry->d_name, path, sizeof(path)) < 0)
			continue;
		if (!bsearch(&key, ours, n, sizeof(*ours), by_path))
			met(data, path);
	}
	closedir(list);
	return 0;
}

/* Reports a directory or file whose mode is not what the change gave it. Times of the host's stay anyway. */
static void check_mode(const struct cordon_apply_step *step, const struct cordon_ident *found,
		       void (*met)(void *data, const char *path), void *data)
{
	bool other = ((found->mode ^ step->new.mode) & (S_IFMT | 0777)) != 0;

	if (found->mode && other && ((step->old.mode ^ step->new.mode) & 0777))
		met(data, step->path);
}

/* Collects the paths of all steps, or of those that give a name; sorted. */
static size_t collect(const struct cordon_apply_journal *journal, bool given, const char **ret_paths)
{
	size_t n = 0;

	for (size_t i = 0; i < journal->n; i++)
		if (!given || journal->steps[i].kind == CORDON_APPLY_STEP_PUT)
			ret_paths[n++] = journal->steps[i].path;
	qsort(ret_paths, n, sizeof(*ret_paths), by_path);
	return n;
}

int cordon_apply_journal_obstacles(const struct cordon_apply_journal *journal,
				   void (*met)(void *data, const char *path), void *data, struct cordon_error *err)
{
	autofree const char **ours = calloc(journal->n + 1, sizeof(*ours));
	autofree const char **given = calloc(journal->n + 1, sizeof(*given));
	size_t n_given;
	int r = 0;

	if (!ours || !given)
		return cordon_no_memory(err);
	collect(journal, false, ours);
	n_given = collect(journal, true, given);
	for (size_t i = 0; r == 0 && i < journal->n; i++) {
		const struct cordon_apply_step *step = &journal->steps[i];
		struct cordon_ident found;

		if (step->kind == CORDON_APPLY_STEP_OPEN)
			continue;
		r = cordon_apply_steps_look(journal, step->path, &found);
		/* The change closed a directory to its owner. The steps open it first, and look again. */
		if (r == -EACCES) {
			r = 0;
			continue;
		}
		if (r < 0)
			return cordon_fail_errno(err, r, "cannot read %s", step->path);
		if (step->kind == CORDON_APPLY_STEP_META) {
			check_mode(step, &found, met, data);
		} else if (step->kind == CORDON_APPLY_STEP_TAKE) {
			/* A file may have become a directory: then another step put it there. */
			if (found.mode && !bsearch(&step->path, given, n_given, sizeof(*given), by_path))
				met(data, step->path);
		} else if (S_ISDIR(step->new.mode) && S_ISDIR(found.mode)) {
			r = find_strangers(journal, step->path, ours, journal->n, met, data);
		} else if (!cordon_ident_same(&found, &step->new)) {
			met(data, step->path);
		}
	}
	return r < 0 ? cordon_fail_errno(err, r, "cannot read the root") : 0;
}
