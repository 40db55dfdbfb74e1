/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of temporary names of atomic saves; docs/lens.md lists them. */
#include <limits.h>

#include "policy/temp_names.h"

/* What follows the fixed part of a shape. */
enum tail { NOTHING, LETTER, DIGITS, RANDOM_6, RANDOM_6_MARKED, RANDOM_8, WORDS };

/* before + NAME + after + tail, for a NAME that can be written. */
struct shape {
	const char *before, *after;
	enum tail tail;
	bool link; /* may be a symbolic link */
};

static const struct shape shapes[] = {
	{ "", "~", NOTHING, false },	 /* emacs, vim backups */
	{ ".", ".sw", LETTER, false },	 /* vim swap files */
	{ ".#", "", NOTHING, true },	 /* emacs locks */
	{ "#", "#", NOTHING, false },	 /* emacs autosaves */
	{ "", ".lock", NOTHING, false }, /* git, and many others */
	{ "", ".tmp", WORDS, false },	 /* NAME.tmp, .tmp.PID, .tmp-TIME */
	{ ".", ".tmp", WORDS, false },
	{ "", ".", DIGITS, false },		/* write-file-atomic (npm, prettier), gofmt */
	{ "", ".", RANDOM_6, false },		/* mkstemp */
	{ ".", ".", RANDOM_6, false },		/* rsync */
	{ "", ".", RANDOM_6_MARKED, false },	/* GNU patch: one letter in front */
	{ "", "___jb_tmp___", NOTHING, false }, /* JetBrains */
	{ "", "___jb_old___", NOTHING, false },
};

/* Shapes that do not contain the name of the file: there must be a writable file in the same directory. */
static const struct shape generic_shapes[] = {
	{ "sed", "", RANDOM_6, false },
	{ "tmp", "", RANDOM_8, false },		    /* Python's tempfile */
	{ ".tmp", "", RANDOM_6, false },	    /* Rust's tempfile */
	{ ".goutputstream-", "", RANDOM_6, false }, /* GLib */
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

static bool fits(const struct shape *shape, const char *name, cordon_temp_writable_fn writable, void *data)
{
	const char *begin = skip(name, shape->before);

	/* Try every place where NAME could end; few of them leave a tail that fits. */
	for (size_t n = 1; begin && n <= strlen(begin); n++) {
		const char *tail = skip(begin + n, shape->after);

		if (tail && tail_fits(shape->tail, tail) && writable(data, begin, n))
			return true;
	}
	return false;
}

bool cordon_temp_of_name(const char *name, bool link, cordon_temp_writable_fn writable, void *data)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(shapes); i++)
		if ((!link || shapes[i].link) && fits(&shapes[i], name, writable, data))
			return true;
	return false;
}

bool cordon_temp_predictable(const char *name, cordon_temp_writable_fn writable, void *data)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(shapes); i++)
		if (shapes[i].tail != RANDOM_6 && shapes[i].tail != RANDOM_6_MARKED && shapes[i].tail != RANDOM_8 &&
		    fits(&shapes[i], name, writable, data))
			return true;
	return false;
}

/* To find out whether it can make files here, vim tries the name 4913 and adds 123 until a name is free. */
static bool is_vim_probe(const char *name)
{
	uint64_t number;

	return cordon_parse_u64(name, 4913, 99999, &number) == 0 && (number - 4913) % 123 == 0;
}

/* perl -i uses eight letters and digits and nothing else. A name that could be a word (Makefile, CITATION, generate)
 * is not accepted: there must be a capital or a digit behind the first letter, and they must not all be capitals. */
static bool is_perl(const char *name)
{
	bool chance = false, capitals = true;

	if (!all(name, is_word, 8, 8))
		return false;
	for (size_t i = 0; i < 8; i++) {
		capitals &= name[i] >= 'A' && name[i] <= 'Z';
		chance |= i > 0 && !is_letter(name[i]);
	}
	return chance && !capitals;
}

size_t cordon_temp_fixed(const char *name)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(generic_shapes); i++) {
		const char *tail = skip(name, generic_shapes[i].before);

		if (tail && tail_fits(generic_shapes[i].tail, tail))
			return (size_t)(tail - name);
	}
	return 0;
}

bool cordon_temp_of_any(const char *name)
{
	return cordon_temp_fixed(name) > 0 || is_vim_probe(name) || is_perl(name);
}
