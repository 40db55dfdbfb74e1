/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns that a folder stands for in a fileScope. */
#include <stdio.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/text.h"
#include "config/prd.h"
#include "policy/pattern.h"

static const char *const extensions[] = { "sh", "js", "ts", "py", "json", "md", "yaml", "yml" };

/* Adds the pattern `front` + `tail`. It is compiled first: a pattern in a PRD must be one that can be enforced. */
static int add(json_t *patterns, const char *front, const char *tail, struct cordon_error *err)
{
	struct cordon_buf text autobuf = CORDON_BUF((size_t)4 * CORDON_PATTERN_MAX);
	size_t column;
	int r;

	if (cordon_buf_adds(&text, front) < 0 || cordon_buf_adds(&text, tail) < 0)
		return cordon_fail_errno(err, -ENOMEM, "cannot infer a scope");
	r = cordon_pattern_check(text.data, &column, err);
	if (r < 0)
		return r;
	if (json_array_append_new(patterns, json_string(text.data)) < 0)
		return cordon_fail_errno(err, -ENOMEM, "cannot infer a scope");
	return 0;
}

static int add_folder(json_t *patterns, const char *folder, unsigned int flags, struct cordon_error *err)
{
	autofree char *quoted = folder[0] ? cordon_pattern_quote(folder) : strdup("");
	const char *slash = folder[0] ? "/" : "";
	char tail[32];
	int r = 0;

	if (!quoted)
		return cordon_fail_errno(err, -ENOMEM, "cannot infer a scope");
	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(extensions); i++) {
		snprintf(tail, sizeof(tail), "%s**/*.%s", slash, extensions[i]);
		r = add(patterns, quoted, tail, err);
	}
	if (r == 0 && flags & CORDON_SCOPE_WITH_FOLDER)
		r = add(patterns, quoted, folder[0] ? "/" : "**", err);
	return r;
}

/* Makes the form in which two spellings of a folder are the same. */
static int clean_folder(const char *folder, char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	int r;

	if (!cordon_utf8_valid(folder, strlen(folder))) {
		cordon_fail(err, -EILSEQ, CORDON_KIND_USAGE, "folder '%s' is not UTF-8, which JSON can't hold", folder);
		cordon_error_hint(err, "rename it");
		return -EILSEQ;
	}
	r = folder[0] == '/' ? -EXDEV : cordon_path_clean(folder, ret, CORDON_PATH_MAX);
	if (r < 0)
		return cordon_fail(err, r, CORDON_KIND_USAGE, "folder '%s' %s", folder,
				   r == -EXDEV ? "is not a path below the repository root" : "is too long");
	return 0;
}

static bool seen_before(const char *const *folders, size_t i, const char *clean)
{
	char other[CORDON_PATH_MAX];

	for (size_t j = 0; j < i; j++)
		if (clean_folder(folders[j], other, NULL) == 0 && cordon_streq(other, clean))
			return true;
	return false;
}

int cordon_prd_infer_scope(const char *const *folders, size_t n, unsigned int flags, json_t **ret_patterns,
			   struct cordon_error *err)
{
	char clean[CORDON_PATH_MAX] = "";
	json_t *patterns = json_array();
	int r = patterns ? 0 : cordon_fail_errno(err, -ENOMEM, "cannot infer a scope");

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = clean_folder(folders[i], clean, err);
		if (r == 0 && !seen_before(folders, i, clean))
			r = add_folder(patterns, clean, flags, err);
	}
	if (r < 0) {
		json_decref(patterns);
		return r;
	}
	*ret_patterns = patterns;
	return 0;
}

/* Whether a pattern is FOLDER/ **, then *.EXT for one of the folders, with an extension of letters, digits and _. */
static bool is_extension(const char *pattern, const char *const *folders, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char clean[CORDON_PATH_MAX];
		autofree char *quoted = clean_folder(folders[i], clean, NULL) < 0 ? NULL : cordon_pattern_quote(clean);
		size_t len = quoted ? strlen(quoted) : 0;
		const char *rest = pattern + len;

		if (!quoted || strncmp(pattern, quoted, len) != 0 || (len && *rest++ != '/'))
			continue;
		if (strncmp(rest, "**/*.", 5) == 0 && rest[5] && !rest[5 + strspn(rest + 5, CORDON_PRD_EXTENSION)])
			return true;
	}
	return false;
}

static bool begins_with(const struct cordon_prd_story *story, const json_t *patterns)
{
	size_t n = json_array_size(patterns);

	if (n == 0 || story->n_scope < n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!cordon_streq(story->scope[i], json_string_value(json_array_get(patterns, i))))
			return false;
	return true;
}

bool cordon_prd_scope_inferred(const struct cordon_prd_story *story, const char *const *folders, size_t n)
{
	static const unsigned int forms[] = { CORDON_SCOPE_WITH_FOLDER, 0 };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(forms); i++) {
		json_t *patterns = NULL;
		size_t at;
		bool same;

		if (cordon_prd_infer_scope(folders, n, forms[i], &patterns, NULL) < 0)
			return false;
		same = begins_with(story, patterns);
		for (at = json_array_size(patterns); same && at < story->n_scope; at++)
			same = is_extension(story->scope[at], folders, n);
		json_decref(patterns);
		if (same)
			return true;
	}
	return false;
}
