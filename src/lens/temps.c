/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary names of atomic saves (docs/lens.md has the rule). Editors, `sed -i`, formatters and git write beside a
 * file under another name and rename it into place. Such a name is out of scope where the scope judges names, so:
 *   - it can be made when it has one of the shapes below and what it would become can be written;
 *   - only this run's own are seen, by the run alone, and not a file of the host that looks alike;
 *   - it can be written, removed, or renamed to a name in scope or to another such name; nothing else;
 *   - what is left of them is removed when the lens ends.
 */
#include <dirent.h>
#include <fcntl.h>

#include "base/path.h"
#include "lens/lens.h"

#define SIBLINGS_MAX 10000 /* entries looked at to find a file beside which a temporary name may stand */

/* What follows the fixed part of a shape. */
enum tail { NOTHING, LETTER, DIGITS, RANDOM_6, RANDOM_6_MARKED, RANDOM_8, WORDS };

/* before + NAME + after + tail, for a NAME that can be written. */
struct shape {
	const char *before, *after;
	enum tail tail;
	bool link; /* may be a symbolic link */
};

static const struct shape shapes[] = {
	{ "", "~", NOTHING, false },		     /* emacs, vim backups */
	{ ".", ".sw", LETTER, false },		     /* vim swap files */
	{ ".#", "", NOTHING, true },		     /* emacs locks */
	{ "#", "#", NOTHING, false },		     /* emacs autosaves */
	{ "", ".lock", NOTHING, false },	     /* git, and many others */
	{ "", ".tmp", WORDS, false },		     /* NAME.tmp, .tmp.PID, .tmp-TIME */
	{ ".", ".tmp", WORDS, false },
	{ "", ".", DIGITS, false },		     /* write-file-atomic (npm, prettier), gofmt */
	{ "", ".", RANDOM_6, false },		     /* mkstemp */
	{ ".", ".", RANDOM_6, false },		     /* rsync */
	{ "", ".", RANDOM_6_MARKED, false },	     /* GNU patch: one letter in front */
	{ "", "___jb_tmp___", NOTHING, false },	     /* JetBrains */
	{ "", "___jb_old___", NOTHING, false },
};

/* Shapes that do not say which file they are for: they need one beside them. */
static const struct shape generic_shapes[] = {
	{ "sed", "", RANDOM_6, false },
	{ "tmp", "", RANDOM_8, false },		     /* Python's tempfile */
	{ ".tmp", "", RANDOM_6, false },	     /* Rust's tempfile */
	{ ".goutputstream-", "", RANDOM_6, false },  /* GLib */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool all(const char *s, bool (*is)(char), size_t min, size_t max)
{
	size_t n = 0;

	while (is(s[n]))
		n++;
	return !s[n] && n >= min && n <= max;
}

static bool is_loose(char c)
{
	return is_word(c) || c == '.' || c == '-' || c == '_';
}

static bool is_python(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_letter(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool tail_fits(enum tail tail, const char *s)
{
	switch (tail) {
	case NOTHING:
		return !*s;
	case LETTER:
		return all(s, is_letter, 1, 1);
	case DIGITS:
		return all(s, is_digit, 1, 20);
	case RANDOM_6:
		return all(s, is_word, 6, 6);
	case RANDOM_6_MARKED:
		return (s[0] == 'o' || s[0] == 'p' || s[0] == 'r') && all(s + 1, is_word, 6, 6);
	case RANDOM_8:
		return all(s, is_python, 8, 8);
	case WORDS:
		return all(s, is_loose, 0, NAME_MAX);
	}
	return false;
}

/* The text after `prefix`, or NULL. */
static const char *skip(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

static bool writable(const struct lens *lens, const char *dir_path, const char *name, size_t n)
{
	char text[NAME_MAX + 1], path[CORDON_PATH_MAX];

	return cordon_copy(text, sizeof(text), name, n) == 0 && !cordon_streq(text, ".") &&
	       !cordon_streq(text, "..") && cordon_path_join(dir_path, text, path, sizeof(path)) == 0 &&
	       lens_judge(lens, path) == LENS_WRITE;
}

static bool fits(const struct lens *lens, const struct shape *shape, const char *dir_path, const char *name)
{
	const char *begin = skip(name, shape->before);

	/* Every place where NAME could end; few of them leave a tail that fits. */
	for (size_t n = 1; begin && n <= strlen(begin); n++) {
		const char *tail = skip(begin + n, shape->after);

		if (tail && tail_fits(shape->tail, tail) && writable(lens, dir_path, begin, n))
			return true;
	}
	return false;
}

/* vim tries 4913, then adds 123 until the name is free, to see whether it can make files here. */
static bool is_vim_probe(const char *name)
{
	uint64_t number;

	return cordon_parse_u64(name, 4913, 99999, &number) == 0 && (number - 4913) % 123 == 0;
}

static bool fits_generic(const char *name)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(generic_shapes); i++) {
		const char *tail = skip(name, generic_shapes[i].before);

		if (tail && tail_fits(generic_shapes[i].tail, tail))
			return true;
	}
	return is_vim_probe(name);
}

/* Whether a file that can be written stands in the directory. */
static bool has_writable(const struct lens *lens, const char *dir_path, int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	if (!dir) {
		cordon_closep(&fd);
		return false;
	}
	for (size_t i = 0; !found && i < SIBLINGS_MAX && (entry = readdir(dir)) != NULL; i++)
		found = (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN) &&
			writable(lens, dir_path, entry->d_name, strlen(entry->d_name));
	closedir(dir);
	return found;
}

bool lens_temp_shape(const struct lens *lens, const char *dir_path, int dir_fd, const char *name, bool link)
{
	char path[CORDON_PATH_MAX];

	if (!lens->editor_temps || cordon_path_join(dir_path, name, path, sizeof(path)) < 0 ||
	    lens_judge_forbidden(lens, path))
		return false;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(shapes); i++)
		if ((!link || shapes[i].link) && fits(lens, &shapes[i], dir_path, name))
			return true;
	return !link && fits_generic(name) && has_writable(lens, dir_path, dir_fd);
}

struct lens_temp *lens_temp_find(const struct lens *lens, const struct lens_node *parent, const char *name)
{
	for (struct lens_temp *temp = lens->temps; temp; temp = temp->next)
		if (temp->parent == parent && cordon_streq(temp->text, name))
			return temp;
	return NULL;
}

int lens_temp_add(struct lens *lens, struct lens_node *parent, const char *name, const struct lens_id *id)
{
	struct lens_temp *temp = lens_temp_find(lens, parent, name);
	size_t n = strlen(name);

	if (temp) {
		temp->id = *id;
		return 0;
	}
	if (lens->n_temps >= LENS_TEMPS_MAX)
		return -ENOSPC;
	temp = malloc(sizeof(*temp) + n + 1);
	if (!temp)
		return -ENOMEM;
	memcpy(temp->text, name, n + 1);
	temp->parent = parent;
	temp->id = *id;
	temp->next = lens->temps;
	lens->temps = temp;
	lens->n_temps++;
	parent->children++;
	return 0;
}

void lens_temp_drop(struct lens *lens, struct lens_temp *temp)
{
	for (struct lens_temp **at = &lens->temps; *at; at = &(*at)->next) {
		if (*at != temp)
			continue;
		*at = temp->next;
		lens->n_temps--;
		temp->parent->children--;
		lens_node_release(lens, temp->parent);
		free(temp);
		return;
	}
}

void lens_temps_clean(struct lens *lens)
{
	while (lens->temps) {
		struct lens_temp *temp = lens->temps;
		autofd int dir_fd = lens_open_node(lens, temp->parent, false);
		struct statx stx;

		if (dir_fd >= 0 && lens_stat(dir_fd, temp->text, &stx) == 0) {
			struct lens_id id = lens_id_of(&stx);

			if (lens_id_equal(&id, &temp->id))
				(void)unlinkat(dir_fd, temp->text, 0);
		}
		lens_temp_drop(lens, temp);
	}
}
