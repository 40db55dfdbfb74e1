/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what an .envrc reads; the functions are those of direnv-stdlib(1). */
#include "protect/envrc.h"
#include "base/path.h"

/* What the words behind a function are. */
enum meaning {
	MEANS_NOTHING,
	MEANS_SCRIPT, /* a file that is sourced, or the directory of an .envrc */
	MEANS_DATA,   /* a file with variables */
	MEANS_PATH,   /* directories of programs */
	MEANS_PREFIX, /* a directory with bin, lib and so on */
	MEANS_USE,    /* the name of a tool */
};

static const struct {
	const char *word;
	enum meaning meaning;
} functions[] = {
	{ "source_env", MEANS_SCRIPT }, { "source_env_if_exists", MEANS_SCRIPT },
	{ "source", MEANS_SCRIPT },	{ ".", MEANS_SCRIPT },
	{ "dotenv", MEANS_DATA },	{ "dotenv_if_exists", MEANS_DATA },
	{ "PATH_add", MEANS_PATH },	{ "path_add", MEANS_PATH },
	{ "PATH", MEANS_PATH },		{ "load_prefix", MEANS_PREFIX },
	{ "use", MEANS_USE },
};

/* What a tool reads and runs on entering the directory. */
static const struct {
	const char *tool;
	const char *const *files; /* NULL-terminated */
} tools[] = {
	{ "nix", (const char *const[]){ "shell.nix", "default.nix", ".direnv", NULL } },
	{ "flake", (const char *const[]){ "flake.nix", "flake.lock", ".direnv", NULL } },
	{ "guix", (const char *const[]){ "guix.scm", "manifest.scm", "channels.scm", NULL } },
	{ "devenv", (const char *const[]){ "devenv.nix", "devenv.yaml", "devenv.lock", ".devenv", NULL } },
};

/* Directories of programs that are made and thrown away as ordinary work; docs/protected-by-default.md says so. */
static const char *const made_by_work[] = { "node_modules", ".venv", "venv", ".direnv", "target", "build", "vendor" };

struct script {
	struct cordon_protect_collector *c;
	size_t files_left;
};

static int read_script(struct script *s, const char *path);

static bool is_made_by_work(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		for (size_t i = 0; i < CORDON_ARRAY_SIZE(made_by_work); i++)
			if (strncmp(at, made_by_work[i], strlen(made_by_work[i])) == 0 &&
			    (at[strlen(made_by_work[i])] == '/' || !at[strlen(made_by_work[i])]))
				return true;
	return false;
}

static int collect_script(struct script *s, const char *path)
{
	char file[CORDON_PATH_MAX];
	int r = cordon_protect_type_of(s->c, path) == CORDON_PROTECT_DIR
			? cordon_path_join(path, ".envrc", file, sizeof(file))
			: cordon_path_join("", path, file, sizeof(file));

	if (r < 0 || cordon_protect_collected(s->c, file))
		return r;
	r = cordon_protect_collect(s->c, "", file);
	return r < 0 ? r : read_script(s, file);
}

static int collect_tool(struct script *s, const char *tool)
{
	int r = 0;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(tools); i++)
		for (const char *const *file = tools[i].files; r == 0 && cordon_streq(tool, tools[i].tool) && *file;
		     file++)
			r = cordon_protect_collect(s->c, "", *file);
	return r;
}

/* One word, with the meaning that the function before it gives it. */
static int collect_word(struct script *s, enum meaning meaning, const char *word)
{
	char path[CORDON_PATH_MAX];
	enum cordon_protect_type type;

	if (meaning == MEANS_USE)
		return collect_tool(s, word);
	if (*word == '-' || strchr(word, '$') || !cordon_protect_locate(s->c, "", word, path) || !*path)
		return 0;
	type = cordon_protect_type_of(s->c, path);
	switch (meaning) {
	case MEANS_SCRIPT:
		return collect_script(s, path);
	case MEANS_PATH:
		if (is_made_by_work(path))
			return 0;
		return cordon_protect_collect(s->c, "", path);
	case MEANS_PREFIX:
		return is_made_by_work(path) ? 0 : cordon_protect_collect(s->c, path, "bin");
	case MEANS_DATA:
		return type == CORDON_PROTECT_DIR ? 0 : cordon_protect_collect(s->c, "", path);
	case MEANS_NOTHING:
	case MEANS_USE:
		break;
	}
	return type == CORDON_PROTECT_FILE || type == CORDON_PROTECT_OTHER ? cordon_protect_collect(s->c, "", path) : 0;
}

static enum meaning meaning_of(const char *word)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(functions); i++)
		if (cordon_streq(word, functions[i].word))
			return functions[i].meaning;
	return MEANS_NOTHING;
}

/* A path that begins with the directory itself, in one of the usual spellings, is relative. */
static const char *without_directory(const char *word, bool after_pwd)
{
	static const char *const spellings[] = { "$PWD/", "${PWD}/", "$DIRENV_DIR/" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(spellings); i++)
		if (strncmp(word, spellings[i], strlen(spellings[i])) == 0)
			return word + strlen(spellings[i]);
	return after_pwd && *word == '/' ? word + 1 : word;
}

/* One line, without its end. */
static int read_line(struct script *s, const char *line, size_t len)
{
	static const char separators[] = " \t\r'\"`;|&()<>=:!";
	enum meaning meaning = MEANS_NOTHING;
	bool after_pwd = false, alone = false;
	char word[CORDON_PATH_MAX], function[16];
	const char *end = line + len;
	int r = 0;

	while (r == 0 && line < end) {
		enum meaning found;
		size_t n = 0;

		if (strchr(separators, *line)) {
			meaning = *line == ';' || *line == '|' || *line == '&' ? MEANS_NOTHING : meaning;
			line++;
			continue;
		}
		while (line + n < end && !strchr(separators, line[n]))
			n++;
		if (*line == '#')
			break; /* a comment */
		if (cordon_copy(word, sizeof(word), line, n) < 0)
			break;
		line += n;
		found = meaning == MEANS_NOTHING ? meaning_of(word) : MEANS_NOTHING;
		if (found != MEANS_NOTHING) {
			meaning = found;
			alone = found == MEANS_DATA;
			continue;
		}
		/* The functions `use nix` and use_nix are the same one. */
		if (strncmp(word, "use_", 4) == 0 &&
		    cordon_copy(function, sizeof(function), word + 4, strlen(word + 4)) == 0)
			r = collect_tool(s, function);
		else
			r = collect_word(s, meaning, without_directory(word, after_pwd));
		alone = false;
		after_pwd = cordon_streq(word, "pwd");
	}
	return r == 0 && alone ? cordon_protect_collect(s->c, "", ".env") : r;
}

static int read_script(struct script *s, const char *path)
{
	autobuf struct cordon_buf text = { 0 };
	int r;

	if (s->files_left == 0)
		return -E2BIG;
	s->files_left--;
	r = cordon_protect_read(s->c, path, CORDON_ENVRC_BYTES_MAX, &text);
	if (r != 0)
		return r < 0 ? r : 0;
	for (const char *line = text.data, *end = text.data + text.len; r == 0 && line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));

		next = next ? next : end;
		r = memchr(line, '\0', (size_t)(next - line)) ? 0 : read_line(s, line, (size_t)(next - line));
		line = next + 1;
	}
	return r;
}

int cordon_protect_envrc(struct cordon_protect_collector *c)
{
	struct script s = { c, CORDON_ENVRC_FILES_MAX };

	return read_script(&s, ".envrc");
}
