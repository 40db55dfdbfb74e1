/* SPDX-License-Identifier: Apache-2.0 */
/* Turns settings of other sandboxes into a policy, value by value. The facts about them are those of their own documents. */
#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "base/path.h"
#include "config/document.h"
#include "config/edit_yaml.h"
#include "config/import.h"
#include "policy/net.h"
#include "policy/pattern.h"

#define KEY_MAX 1024
#define EVERYTHING "**"

/* ---- values ---- */

void cordon_import_done(struct cordon_import *import)
{
	for (size_t i = 0; i < import->n; i++) {
		free(import->lines[i].key);
		free(import->lines[i].value);
		free(import->lines[i].became);
		free(import->lines[i].why);
	}
	free(import->lines);
	json_decref(import->policy);
	*import = (struct cordon_import){ 0 };
}

int cordon_import_add(struct cordon_import *import, const char *key, const char *value, uint32_t line, uint32_t column)
{
	struct cordon_import_line new = { .line = line, .column = column, .verdict = CORDON_IMPORT__MAX };

	if (import->n == CORDON_IMPORT_LINES_MAX)
		return -E2BIG;
	if (import->n == import->space) {
		size_t space = import->space ? 2 * import->space : 64;
		struct cordon_import_line *bigger = reallocarray(import->lines, space, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		import->lines = bigger;
		import->space = space;
	}
	new.key = strdup(key);
	new.value = strdup(value);
	import->lines[import->n++] = new;
	return new.key &&new.value ? 0 : -ENOMEM;
}

/* Adds the values of a JSON document. */
static int flatten(struct cordon_import *import, const struct cordon_node *node, const char *key)
{
	char below[KEY_MAX];
	int r = 0;

	if (node->type == CORDON_NODE_SCALAR)
		return cordon_import_add(import, key, node->text, node->line, node->column);
	if (!node->first)
		return cordon_import_add(import, key, node->type == CORDON_NODE_SEQUENCE ? "[]" : "{}", node->line,
					 node->column);
	for (const struct cordon_node *child = node->first; r == 0 && child; child = child->next) {
		const char *name = child->key ? child->key->text : "";

		if (cordon_concat(below, sizeof(below), key, *key && *name ? "." : "", name, (char *)NULL) < 0)
			return -ENAMETOOLONG;
		r = flatten(import, child, below);
	}
	return r;
}

/* ---- what becomes of a value ---- */

struct importing {
	struct cordon_import *import;
	const char *root;
};

static json_t *list_of(struct importing *in, const char *key)
{
	json_t *list = json_object_get(in->import->policy, key);

	if (!list && json_object_set_new(in->import->policy, key, json_array()) == 0)
		list = json_object_get(in->import->policy, key);
	return list;
}

static void add_rule(struct importing *in, const char *key, const char *text)
{
	json_t *list = list_of(in, key);

	if (!cordon_json_has(list, text))
		json_array_append_new(list, json_string(text));
}

CORDON_PRINTF(4, 5)
static void judge(struct cordon_import_line *line, cordon_import_verdict verdict, const char *became, const char *fmt,
		  ...)
{
	va_list args;

	line->verdict = verdict;
	free(line->became);
	free(line->why);
	line->became = became ? strdup(became) : NULL;
	line->why = NULL;
	va_start(args, fmt);
	if (vasprintf(&line->why, fmt, args) < 0)
		line->why = NULL;
	va_end(args);
}

static bool has_wildcard(const char *text)
{
	return strpbrk(text, "*?[{") != NULL;
}

/* Where a path of theirs leads: into the root, to something that has the root in it, somewhere else, into what each run has for
 * itself; or it can't be said. */
typedef enum place { IN_ROOT, ABOVE, ELSEWHERE, PRIVATE, UNCLEAR } place;

static bool is_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return cordon_streq(dir, "/") || (strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/'));
}

static bool has_dots(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		if (strncmp(at, "..", 2) == 0 && (!at[2] || at[2] == '/'))
			return true;
	return false;
}

static place place_absolute(const struct importing *in, char *path, const char **ret_rest)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	if (is_within(path, in->root)) {
		*ret_rest = path + strlen(in->root) + (path[strlen(in->root)] == '/');
		return IN_ROOT;
	}
	/* "/home/me/**" is all that lies in it. */
	if (n > 3 && cordon_streq(path + n - 3, "/**"))
		path[n - 3] = '\0';
	if (is_within(in->root, *path ? path : "/"))
		return ABOVE;
	if (has_wildcard(path))
		return UNCLEAR;
	return is_within(path, "/tmp") || is_within(path, "/dev") ? PRIVATE : ELSEWHERE;
}

/* A pattern of ours for a path of theirs: relative to the root, and with everything below it. */
static place place_of(const struct importing *in, const char *path, char ret[static CORDON_PATH_MAX])
{
	const char *home = *path == '~' ? getenv("HOME") : NULL;
	char absolute[CORDON_PATH_MAX];
	place found;
	size_t n;

	if (has_dots(path) || (*path == '~' && path[1] && path[1] != '/') ||
	    cordon_concat(absolute, sizeof(absolute), home ? home : "", *path == '~' ? path + 1 : path, (char *)NULL) < 0)
		return UNCLEAR;
	path = absolute;
	if (*path == '/' && (found = place_absolute(in, absolute, &path)) != IN_ROOT)
		return found;
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	if (cordon_streq(path, ".") || !*path)
		path = EVERYTHING;
	if (cordon_copy(ret, CORDON_PATH_MAX, path, strlen(path)) < 0)
		return UNCLEAR;
	for (n = strlen(ret); n > 1 && ret[n - 1] == '/';)
		ret[--n] = '\0';
	return IN_ROOT;
}

static bool is_pattern(struct cordon_import_line *line, const char *text)
{
	struct cordon_error err = { 0 };
	size_t column;

	if (cordon_pattern_check(text, &column, &err) == 0)
		return true;
	judge(line, CORDON_IMPORT_NONE, NULL, "it is no pattern here: %s", err.message);
	return false;
}

#define UNCLEAR_WHY                                                                                                    \
	"a path with '..', or a pattern that begins outside the root, is not followed: write one for the root"

/* Whether what denies the root is taken back for all of it. */
static bool reads_root(const struct importing *in)
{
	char own[CORDON_PATH_MAX];

	for (size_t i = 0; i < in->import->n; i++) {
		const struct cordon_import_line *line = &in->import->lines[i];
		const char *dot = strrchr(line->key, '.');

		if (dot && cordon_streq(dot + 1, "allowRead") && place_of(in, line->value, own) == IN_ROOT &&
		    cordon_streq(own, EVERYTHING))
			return true;
	}
	return false;
}

static void forbid_reading(struct importing *in, struct cordon_import_line *line, const char *path)
{
	char own[CORDON_PATH_MAX];

	switch (place_of(in, path, own)) {
	case IN_ROOT:
		if (!is_pattern(line, own))
			return;
		add_rule(in, "deny", own);
		judge(line, CORDON_IMPORT_SAME, "deny", "it can't be written, either");
		return;
	case ABOVE:
		if (reads_root(in)) {
			judge(line, CORDON_IMPORT_SAME, NULL, "nothing outside the root is seen");
			return;
		}
		add_rule(in, "deny", EVERYTHING);
		judge(line, CORDON_IMPORT_SAME, "deny", "the root lies in it");
		return;
	case ELSEWHERE:
	case PRIVATE:
		judge(line, CORDON_IMPORT_SAME, NULL, "nothing outside the root is seen");
		return;
	case UNCLEAR:
		judge(line, CORDON_IMPORT_WEAKER, NULL, UNCLEAR_WHY);
	}
}

static void forbid_writing(struct importing *in, struct cordon_import_line *line, const char *path)
{
	char own[CORDON_PATH_MAX];

	switch (place_of(in, path, own)) {
	case IN_ROOT:
		if (!is_pattern(line, own))
			return;
		if (has_wildcard(own)) {
			add_rule(in, "deny", own);
			judge(line, CORDON_IMPORT_STRICTER, "deny",
			      "only a plain path can be kept from writing alone, so it is hidden");
		} else {
			add_rule(in, "protect", own);
			judge(line, CORDON_IMPORT_SAME, "protect", "it can be read, and not be made when it is missing");
		}
		return;
	case ABOVE:
		json_object_set_new(in->import->policy, "read_only", json_true());
		judge(line, CORDON_IMPORT_SAME, "read_only", "the root lies in it");
		return;
	case ELSEWHERE:
	case PRIVATE:
		judge(line, CORDON_IMPORT_SAME, NULL, "nothing outside the root can be written");
		return;
	case UNCLEAR:
		judge(line, CORDON_IMPORT_WEAKER, NULL, UNCLEAR_WHY);
	}
}

static void allow_path(struct importing *in, struct cordon_import_line *line, const char *path, bool write)
{
	const char *key = write ? "rw" : "ro";
	char own[CORDON_PATH_MAX];

	switch (place_of(in, path, own)) {
	case IN_ROOT:
		if (!is_pattern(line, own))
			return;
		add_rule(in, key, own);
		if (write && *own == '*' && !cordon_streq(own, EVERYTHING))
			judge(line, CORDON_IMPORT_STRICTER, key,
			      "where 'ro' has a rule that is as special, that one decides; see 'cordon why'");
		else
			judge(line, CORDON_IMPORT_SAME, key, "what the host would execute later stays protected");
		return;
	case PRIVATE:
		judge(line, CORDON_IMPORT_STRICTER, NULL, "the run has a private one, which is discarded at its end");
		return;
	case ABOVE:
		add_rule(in, key, EVERYTHING);
		judge(line, CORDON_IMPORT_STRICTER, key, "the root, and nothing else of it");
		return;
	case ELSEWHERE:
		judge(line, CORDON_IMPORT_STRICTER, NULL, "it lies outside the root; 'share' could show it");
		return;
	case UNCLEAR:
		judge(line, CORDON_IMPORT_STRICTER, NULL, UNCLEAR_WHY);
	}
}

/* ---- hosts ---- */

static bool is_host(const char *text)
{
	size_t column;

	return cordon_net_rule_check(text, &column, NULL) == 0;
}

/* Whether a name that is allowed stands for one that is denied. */
static bool covers(const char *allowed, const char *denied)
{
	const char *suffix = strncmp(allowed, "*.", 2) == 0 ? allowed + 1 : NULL;
	size_t n = strlen(denied), m = suffix ? strlen(suffix) : 0;

	if (strcasecmp(allowed, denied) == 0)
		return true;
	if (strncmp(denied, "*.", 2) == 0 && !suffix)
		return covers(denied, allowed);
	return suffix && n > m && strcasecmp(denied + n - m, suffix) == 0;
}

/* The name in a rule about a host: of WebFetch(domain:NAME), or the whole value. */
static const char *denied_host(const struct cordon_import_line *line, char ret[static KEY_MAX])
{
	static const char fetch[] = "WebFetch(domain:";
	size_t n = strlen(line->value);
	const char *dot = strrchr(line->key, '.');

	if (dot && cordon_streq(dot + 1, "deniedDomains"))
		return line->value;
	if (!cordon_streq(line->key, "permissions.deny") || strncmp(line->value, fetch, strlen(fetch)) != 0 ||
	    line->value[n - 1] != ')' ||
	    cordon_copy(ret, KEY_MAX, line->value + strlen(fetch), n - strlen(fetch) - 1) < 0)
		return NULL;
	return ret;
}

static void allow_host(struct importing *in, struct cordon_import_line *line, const char *host)
{
	char text[KEY_MAX];

	if (!is_host(host)) {
		judge(line, CORDON_IMPORT_STRICTER, NULL, "it is no host of a list here, so nothing of it is reached");
		return;
	}
	for (size_t i = 0; i < in->import->n; i++) {
		const char *denied = denied_host(&in->import->lines[i], text);

		if (denied && covers(host, denied)) {
			judge(line, CORDON_IMPORT_STRICTER, NULL,
			      "%s is denied, and a list has no exceptions, so it is left out", denied);
			return;
		}
	}
	add_rule(in, "net", host);
	judge(line, CORDON_IMPORT_STRICTER, "net", "port 443 only; HOST:PORT adds another one");
}

/* ---- values that are the same for several of them ---- */

static bool is_true(const struct cordon_import_line *line)
{
	return cordon_streq(line->value, "true");
}

static bool is_empty(const struct cordon_import_line *line)
{
	return cordon_streq(line->value, "[]") || cordon_streq(line->value, "{}");
}

static void other(struct cordon_import_line *line)
{
	judge(line, CORDON_IMPORT_NONE, NULL, "it says nothing about what may be accessed");
}

/* The keys of sandbox-runtime, which are also those of Claude Code's sandbox. False when there is no such key. */
static bool srt_value(struct importing *in, struct cordon_import_line *line, const char *key)
{
	static const struct {
		const char *key, *why;
		cordon_import_verdict verdict;
	} others[] = {
		{ "network.deniedDomains", "what is not in the list is not reached", CORDON_IMPORT_SAME },
		{ "network.allowUnixSockets", "no socket of the host is seen; 'share' could show one",
		  CORDON_IMPORT_STRICTER },
		{ "network.allowAllUnixSockets", "no socket of the host is seen", CORDON_IMPORT_STRICTER },
		{ "network.allowLocalBinding", "the run has a loopback of its own", CORDON_IMPORT_SAME },
		{ "network.httpProxyPort", "hosts are reached without a proxy of the user's", CORDON_IMPORT_NONE },
		{ "network.socksProxyPort", "hosts are reached without a proxy of the user's", CORDON_IMPORT_NONE },
		{ "filesystem.allowRead", "what 'deny' hides stays hidden", CORDON_IMPORT_STRICTER },
		{ "filesystem.allowGitConfig", "the configuration of git stays protected; 'unprotect' lifts it",
		  CORDON_IMPORT_STRICTER },
		{ "enableWeakerNestedSandbox", "there is no weaker sandbox", CORDON_IMPORT_STRICTER },
		{ "enableWeakerNetworkIsolation", "there is no weaker isolation", CORDON_IMPORT_STRICTER },
	};

	if (is_empty(line)) {
		judge(line, CORDON_IMPORT_SAME, NULL, "it is empty");
		if (cordon_streq(key, "network.allowedDomains"))
			judge(line, CORDON_IMPORT_SAME, "net", "no host is reached");
		return true;
	}
	if (cordon_streq(key, "network.allowedDomains"))
		allow_host(in, line, line->value);
	else if (cordon_streq(key, "filesystem.denyRead"))
		forbid_reading(in, line, line->value);
	else if (cordon_streq(key, "filesystem.allowWrite"))
		allow_path(in, line, line->value, true);
	else if (cordon_streq(key, "filesystem.denyWrite"))
		forbid_writing(in, line, line->value);
	else {
		for (size_t i = 0; i < CORDON_ARRAY_SIZE(others); i++)
			if (cordon_streq(others[i].key, key)) {
				judge(line, others[i].verdict, NULL, "%s", others[i].why);
				return true;
			}
		return false;
	}
	return true;
}

/* A default of theirs, which no line says. */
static void add_default(struct importing *in, const char *key, const char *value, cordon_import_verdict verdict,
			const char *became, const char *why)
{
	if (cordon_import_add(in->import, key, value, 0, 0) == 0)
		judge(&in->import->lines[in->import->n - 1], verdict, became, "%s", why);
}

static void import_srt(struct importing *in)
{
	for (size_t i = 0; i < in->import->n; i++)
		if (!srt_value(in, &in->import->lines[i], in->import->lines[i].key))
			other(&in->import->lines[i]);
	add_rule(in, "ro", EVERYTHING);
	add_default(in, "filesystem", "reads everywhere", CORDON_IMPORT_STRICTER, "ro",
		    "the root, the system and nothing else of the host is read");
}

/* ---- Codex ---- */

static const struct cordon_import_line *find(const struct cordon_import *import, const char *key)
{
	for (size_t i = 0; i < import->n; i++)
		if (cordon_streq(import->lines[i].key, key))
			return &import->lines[i];
	return NULL;
}

static void codex_mode(struct importing *in, struct cordon_import_line *line)
{
	if (cordon_streq(line->value, "read-only"))
		judge(line, CORDON_IMPORT_STRICTER, "ro", "and nothing outside the root and the system is read");
	else if (cordon_streq(line->value, "workspace-write"))
		judge(line, CORDON_IMPORT_STRICTER, "rw", "and nothing outside the root and the system is read");
	else if (cordon_streq(line->value, "danger-full-access"))
		judge(line, CORDON_IMPORT_STRICTER, "rw", "the root can be written and every host reached, and no more");
	else
		judge(line, CORDON_IMPORT_STRICTER, "ro", "the mode is not known here, so nothing can be written");
	(void)in;
}

static void codex_value(struct importing *in, struct cordon_import_line *line, bool writes)
{
	const char *key = line->key;
	static const char table[] = "sandbox_workspace_write.";

	if (cordon_streq(key, "sandbox_mode")) {
		codex_mode(in, line);
	} else if (strncmp(key, table, strlen(table)) != 0) {
		if (cordon_streq(key, "approval_policy"))
			judge(line, CORDON_IMPORT_NONE, NULL,
			      "what Codex asks is its own; here the kernel refuses without a question");
		else if (strncmp(key, "shell_environment_policy", strlen("shell_environment_policy")) == 0)
			judge(line, CORDON_IMPORT_STRICTER, NULL,
			      "no variable of the caller's is seen unless 'keep_env' names it");
		else if (strncmp(key, "profiles.", 9) == 0 || strncmp(key, "permissions.", 12) == 0)
			judge(line, CORDON_IMPORT_STRICTER, NULL, "only the settings without a profile are imported");
		else
			other(line);
	} else if (!writes) {
		judge(line, CORDON_IMPORT_SAME, NULL, "it counts with the mode workspace-write only");
	} else if (cordon_streq(key + strlen(table), "writable_roots")) {
		if (is_empty(line))
			judge(line, CORDON_IMPORT_SAME, NULL, "it is empty");
		else
			allow_path(in, line, line->value, true);
	} else if (cordon_streq(key + strlen(table), "network_access")) {
		judge(line, CORDON_IMPORT_SAME, "net", is_true(line) ? "every host is reached" : "no host is reached");
	} else if (cordon_streq(key + strlen(table), "exclude_tmpdir_env_var") ||
		   cordon_streq(key + strlen(table), "exclude_slash_tmp")) {
		judge(line, CORDON_IMPORT_STRICTER, NULL, "/tmp is private, and the host's is never seen");
	} else {
		other(line);
	}
}

static void import_codex(struct importing *in)
{
	const struct cordon_import_line *mode = find(in->import, "sandbox_mode"),
					*net = find(in->import, "sandbox_workspace_write.network_access");
	bool full = mode && cordon_streq(mode->value, "danger-full-access");
	bool writes = mode && cordon_streq(mode->value, "workspace-write");
	bool host = full || (writes && net && is_true(net));
	size_t n = in->import->n;

	for (size_t i = 0; i < n; i++)
		codex_value(in, &in->import->lines[i], writes);
	add_rule(in, writes || full ? "rw" : "ro", EVERYTHING);
	if (!mode)
		add_default(in, "sandbox_mode", "read-only", CORDON_IMPORT_STRICTER, "ro",
			    "and nothing outside the root and the system is read");
	if (!net && !full)
		add_default(in, "network_access", "false", CORDON_IMPORT_SAME, "net", "no host is reached");
	if (writes) {
		add_rule(in, "protect", ".codex");
		add_default(in, "sandbox_mode", ".git and .codex can only be read", CORDON_IMPORT_WEAKER, "protect",
			    "git can commit, but its configuration and hooks are protected; 'git: read' forbids it");
	}
	json_object_set_new(in->import->policy, "net", json_string(host ? "host" : "none"));
}

/* ---- Claude Code ---- */

/* Splits "Tool(text)"; the text is "" when there is none. */
static bool split_rule(const char *value, char ret_tool[static 64], char ret_text[static KEY_MAX])
{
	size_t tool = strcspn(value, "("), n = strlen(value);

	ret_text[0] = '\0';
	if (cordon_copy(ret_tool, 64, value, tool) < 0)
		return false;
	if (!value[tool])
		return true;
	return value[n - 1] == ')' && cordon_copy(ret_text, KEY_MAX, value + tool + 1, n - tool - 2) == 0;
}

/* Paths are those of gitignore: a name alone is meant at every depth, "//" is the root of the file system, "/" that of the project. */
static int claude_path(const char *text, char ret[static KEY_MAX])
{
	bool name = !strchr(text, '/') && *text != '~' && *text != '*';

	if (strncmp(text, "//", 2) == 0)
		return cordon_copy(ret, KEY_MAX, text + 1, strlen(text + 1));
	if (*text == '/')
		return cordon_copy(ret, KEY_MAX, text + 1, strlen(text + 1));
	return cordon_concat(ret, KEY_MAX, name ? "**/" : "", text, (char *)NULL);
}

typedef enum wish { ALLOW, ASK, DENY } wish;

static void claude_fetch(struct importing *in, struct cordon_import_line *line, wish how, const char *text)
{
	if (how == DENY)
		judge(line, CORDON_IMPORT_SAME, NULL, "what is not in the list is not reached");
	else if (how == ASK)
		judge(line, CORDON_IMPORT_STRICTER, NULL, "nobody is asked: it is not reached");
	else if (strncmp(text, "domain:", 7) == 0)
		allow_host(in, line, text + 7);
	else
		judge(line, CORDON_IMPORT_STRICTER, NULL, "hosts must be named, so none is reached by it");
}

static void claude_rule(struct importing *in, struct cordon_import_line *line, wish how)
{
	char tool[64], text[KEY_MAX], path[KEY_MAX];
	bool edit, read;

	if (is_empty(line)) {
		judge(line, CORDON_IMPORT_SAME, NULL, "it is empty");
		return;
	}
	if (!split_rule(line->value, tool, text) || claude_path(text, path) < 0) {
		judge(line, CORDON_IMPORT_NONE, NULL, "it is no rule that is known here");
		return;
	}
	edit = cordon_streq(tool, "Edit") || cordon_streq(tool, "Write") || cordon_streq(tool, "MultiEdit") ||
	       cordon_streq(tool, "NotebookEdit");
	read = cordon_streq(tool, "Read") || cordon_streq(tool, "Grep") || cordon_streq(tool, "Glob") ||
	       cordon_streq(tool, "LS");
	if (edit || read) {
		const char *where = *text ? path : EVERYTHING;

		if (how == ALLOW && edit)
			allow_path(in, line, where, true);
		else if (how == ALLOW)
			allow_path(in, line, where, false);
		else if (read)
			forbid_reading(in, line, where);
		else
			forbid_writing(in, line, where);
		if (how == ASK && line->verdict == CORDON_IMPORT_SAME && line->became)
			judge(line, CORDON_IMPORT_STRICTER, read ? "deny" : "protect", "nobody is asked: it is refused");
	} else if (cordon_streq(tool, "WebFetch")) {
		claude_fetch(in, line, how, text);
	} else if (cordon_streq(tool, "Bash")) {
		judge(line, how == ALLOW ? CORDON_IMPORT_NONE : CORDON_IMPORT_WEAKER, NULL,
		      "commands are not judged, but what they read, write and reach is");
	} else {
		judge(line, CORDON_IMPORT_NONE, NULL, "tools are not judged, but what they read, write and reach is");
	}
}

static void claude_value(struct importing *in, struct cordon_import_line *line)
{
	const char *key = line->key;

	if (cordon_streq(key, "permissions.allow"))
		claude_rule(in, line, ALLOW);
	else if (cordon_streq(key, "permissions.ask"))
		claude_rule(in, line, ASK);
	else if (cordon_streq(key, "permissions.deny"))
		claude_rule(in, line, DENY);
	else if (cordon_streq(key, "permissions.additionalDirectories") && !is_empty(line))
		allow_path(in, line, line->value, true);
	else if (cordon_streq(key, "permissions.defaultMode"))
		judge(line, CORDON_IMPORT_STRICTER,
		      cordon_streq(line->value, "acceptEdits") || cordon_streq(line->value, "bypassPermissions") ? "rw"
														 : "ro",
		      "the kernel refuses what no rule allows, without a question");
	else if (cordon_streq(key, "sandbox.enabled"))
		judge(line, is_true(line) ? CORDON_IMPORT_SAME : CORDON_IMPORT_STRICTER, NULL,
		      "everything runs in the sandbox, the client included");
	else if (cordon_streq(key, "sandbox.excludedCommands") || cordon_streq(key, "sandbox.allowUnsandboxedCommands"))
		judge(line, CORDON_IMPORT_STRICTER, NULL, "no command runs outside the sandbox");
	else if (strncmp(key, "sandbox.", 8) != 0 || !srt_value(in, line, key + 8))
		other(line);
}

static void import_claude(struct importing *in)
{
	const struct cordon_import_line *mode = find(in->import, "permissions.defaultMode");
	const char *said = mode ? mode->value : "default";
	bool edits = cordon_streq(said, "acceptEdits") || cordon_streq(said, "bypassPermissions");
	size_t n = in->import->n;

	for (size_t i = 0; i < n; i++)
		claude_value(in, &in->import->lines[i]);
	add_rule(in, edits ? "rw" : "ro", EVERYTHING);
	if (!mode)
		add_default(in, "permissions.defaultMode", "default", CORDON_IMPORT_STRICTER, "ro",
			    "an edit that no rule allows is refused, and nobody is asked");
}

/* ---- all of them ---- */

/* Of two rules about the same paths the stricter one would count. A list of hosts that stayed empty reaches none. */
static void end_policy(struct importing *in)
{
	json_t *ro = json_object_get(in->import->policy, "ro");

	for (size_t i = json_array_size(ro); i-- > 0;)
		if (cordon_json_has(json_object_get(in->import->policy, "rw"), json_string_value(json_array_get(ro, i))))
			json_array_remove(ro, i);
	if (ro && json_array_size(ro) == 0)
		json_object_del(in->import->policy, "ro");
	if (!json_object_get(in->import->policy, "net"))
		json_object_set_new(in->import->policy, "net", json_string("none"));
}

int cordon_import_read(cordon_import_from from, const char *name, const char *text, size_t n, const char *root,
		       struct cordon_import *ret_import, struct cordon_errors *errors)
{
	struct cordon_import import = { .policy = json_pack("{s:i, s:s}", "version", 1, "mode", "strict") };
	struct importing in = { .import = &import, .root = root };
	autodocument struct cordon_document *doc = NULL;
	struct cordon_error err = { 0 };
	int r;

	if (from == CORDON_IMPORT_CODEX) {
		r = cordon_toml_read(name, text, n, &import, errors);
	} else {
		r = cordon_document_parse(name, CORDON_FORMAT_JSON, text, n, CORDON_CONFIG_DEPTH_MAX, &doc, errors);
		if (r == 0 && errors->n)
			r = errors->items[0].code;
		if (r == 0 && doc->root->type != CORDON_NODE_MAPPING) {
			r = cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "an object is expected");
			cordon_errors_add(errors, &err, name, doc->root->line, doc->root->column);
		} else if (r == 0 && doc->root->first && (r = flatten(&import, doc->root, "")) < 0) {
			cordon_fail(&err, r, CORDON_KIND_CONFIG, "it has more than %d values, or too long a key",
				    CORDON_IMPORT_LINES_MAX);
			cordon_errors_add(errors, &err, name, 0, 0);
		}
	}
	if (r < 0) {
		cordon_import_done(&import);
		return r;
	}
	if (from == CORDON_IMPORT_SRT)
		import_srt(&in);
	else if (from == CORDON_IMPORT_CODEX)
		import_codex(&in);
	else
		import_claude(&in);
	end_policy(&in);
	*ret_import = import;
	return 0;
}

int cordon_import_yaml(const struct cordon_import *import, struct cordon_buf *ret_text)
{
	static const char *const order[] = { "version", "mode", "rw", "ro", "deny", "protect", "read_only", "net" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(order); i++) {
		const json_t *value = json_object_get(import->policy, order[i]);

		if (value)
			r = cordon_yaml_write_member(ret_text, 0, order[i], value);
	}
	return r;
}

const char *cordon_import_verdict_name(cordon_import_verdict verdict)
{
	static const char *const names[] = { "same", "stricter", "weaker", "not enforceable" };

	return verdict < CORDON_IMPORT__MAX ? names[verdict] : "not enforceable";
}
