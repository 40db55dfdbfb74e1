/* SPDX-License-Identifier: Apache-2.0 */
/* Parses values that occur both in options and in the policy file. */
#include "config/values.h"
#include "base/path.h"

int cordon_mode_parse(const char *s, cordon_mode *ret_mode, struct cordon_error *err)
{
	if (cordon_streq(s, "strict"))
		*ret_mode = CORDON_MODE_STRICT;
	else if (cordon_streq(s, "permissive"))
		*ret_mode = CORDON_MODE_PERMISSIVE;
	else {
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' is not a mode", s);
		cordon_error_hint(err, "use strict or permissive");
		return -EINVAL;
	}
	return 0;
}

int cordon_lens_parse(const char *s, cordon_lens_use *ret_lens, struct cordon_error *err)
{
	if (cordon_streq(s, "auto"))
		*ret_lens = CORDON_LENS_AUTO;
	else if (cordon_streq(s, "always"))
		*ret_lens = CORDON_LENS_ALWAYS;
	else if (cordon_streq(s, "never"))
		*ret_lens = CORDON_LENS_NEVER;
	else {
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' is not a use of the lens", s);
		cordon_error_hint(err, "use auto, always or never");
		return -EINVAL;
	}
	return 0;
}

static const char *const git_modes[CORDON_GIT__MAX] = { "", "none", "read", "commit" };

int cordon_git_parse(const char *s, cordon_git_mode *ret_git, struct cordon_error *err)
{
	for (int i = CORDON_GIT_NONE; i < CORDON_GIT__MAX; i++)
		if (cordon_streq(s, git_modes[i])) {
			*ret_git = (cordon_git_mode)i;
			return 0;
		}
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' is not a use of the repository", s);
	cordon_error_hint(err, "use none, read or commit");
	return -EINVAL;
}

bool cordon_git_within(cordon_git_mode inner, cordon_git_mode outer)
{
	static const int ranks[CORDON_GIT__MAX] = {
		[CORDON_GIT_NONE] = 0, [CORDON_GIT_READ] = 1, [CORDON_GIT_COMMIT] = 2, [CORDON_GIT_DEFAULT] = 3
	};

	return ranks[inner] <= ranks[outer];
}

const char *cordon_git_mode_name(cordon_git_mode git)
{
	return git_modes[git];
}

void cordon_share_done(struct cordon_share_value *share)
{
	free(share->source);
	free(share->target);
	*share = (struct cordon_share_value){ 0 };
}

/* Takes the field before the next bare colon; *s is then behind that colon, or NULL after the last field. */
static int next_field(const char **s, char *ret, size_t size)
{
	const char *p = *s;
	size_t n = 0;

	for (; *p && *p != ':'; p++) {
		if (p[0] == '\\' && p[1] == ':')
			p++;
		if (n + 1 >= size)
			return -ENAMETOOLONG;
		ret[n++] = *p;
	}
	ret[n] = '\0';
	*s = *p ? p + 1 : NULL;
	return 0;
}

static int share_fail(const char *s, struct cordon_error *err, const char *what)
{
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "share '%s': %s", s, what);
	cordon_error_hint(err, "write DIR, DIR:PATH or DIR:PATH:ro");
	return -EINVAL;
}

int cordon_share_parse(const char *s, struct cordon_share_value *ret_share, struct cordon_error *err)
{
	struct cordon_share_value share = { 0 };
	char source[CORDON_PATH_MAX], target[CORDON_PATH_MAX], clean[CORDON_PATH_MAX] = "", last[8] = "";
	const char *rest = s;

	if (next_field(&rest, source, sizeof(source)) < 0)
		return share_fail(s, err, "the directory is too long");
	if (!source[0])
		return share_fail(s, err, "the directory is empty");
	target[0] = '\0';
	if (rest && cordon_streq(rest, "ro")) {
		share.read_only = true;
	} else if (rest) {
		if (next_field(&rest, target, sizeof(target)) < 0)
			return share_fail(s, err, "the path inside is too long");
		if (target[0] != '/' && strncmp(target, "~/", 2) != 0)
			return share_fail(s, err, "the path inside is not absolute");
		if (cordon_path_clean(target, clean, sizeof(clean)) < 0 || !clean[1])
			return share_fail(s, err, "the path inside may neither be / nor hold ..");
		if (rest && (next_field(&rest, last, sizeof(last)) < 0 || !cordon_streq(last, "ro") || rest))
			return share_fail(s, err, "only ro may follow the path inside");
		share.read_only = last[0];
	}
	share.source = strdup(source);
	share.target = clean[0] ? strdup(clean) : NULL;
	if (!share.source || (clean[0] && !share.target)) {
		cordon_share_done(&share);
		return cordon_fail_errno(err, -ENOMEM, "share '%s'", s);
	}
	*ret_share = share;
	return 0;
}

int cordon_env_name_check(const char *name, size_t len, struct cordon_error *err)
{
	bool ok = len > 0 && !(name[0] >= '0' && name[0] <= '9');

	for (size_t i = 0; ok && i < len; i++) {
		char c = name[i];

		ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
	}
	if (ok)
		return 0;
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%.*s' is not the name of an environment variable",
		    (int)(len < 256 ? len : 256), name);
	cordon_error_hint(err, "letters, digits and underscores, no digit first");
	return -EINVAL;
}

int cordon_env_pattern_check(const char *text, struct cordon_error *err)
{
	size_t len = strlen(text);
	bool star = len > 1 && text[len - 1] == '*';
	int r = cordon_env_name_check(text, len - star, err);

	if (r < 0 && strchr(text, '*'))
		cordon_error_hint(err, "a star stands at the end, after at least one letter: NAME_*");
	return r;
}

const char *cordon_home_rest(const char *path)
{
	static const char *const words[] = { "~", "$HOME", "${HOME}" };

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(words); i++) {
		size_t n = strlen(words[i]);

		if (strncmp(path, words[i], n) == 0 && (path[n] == '/' || !path[n]))
			return path + n + strspn(path + n, "/");
	}
	return NULL;
}

static int limit_fail(const char *what, const char *s, int code, struct cordon_error *err, const char *hint)
{
	cordon_fail(err, code, CORDON_KIND_USAGE, "'%s' is %s%s", s, code == -ERANGE ? "out of range as a " : "no ",
		    what);
	cordon_error_hint(err, "%s", hint);
	return code;
}

int cordon_timeout_parse(const char *s, uint64_t *ret_ms, struct cordon_error *err)
{
	uint64_t ms;
	int r = cordon_parse_duration(s, 1000, &ms);

	if (r == 0 && (ms == 0 || ms > CORDON_TIMEOUT_MAX_MS))
		r = -ERANGE;
	if (r < 0)
		return limit_fail("duration", s, r, err, "a number with ms, s, m or h, up to a year: 90s, 10m");
	*ret_ms = ms;
	return 0;
}

int cordon_memory_parse(const char *s, uint64_t *ret_bytes, struct cordon_error *err)
{
	uint64_t bytes;
	int r = cordon_parse_size(s, &bytes);

	if (r == 0 && (bytes < CORDON_MEMORY_MIN || bytes > INT64_MAX))
		r = -ERANGE;
	if (r < 0)
		return limit_fail("size", s, r, err, "a number with k, M, G or T, at least 1M: 512M, 2G");
	*ret_bytes = bytes;
	return 0;
}

int cordon_pids_parse(const char *s, uint64_t *ret_pids, struct cordon_error *err)
{
	int r = cordon_parse_u64(s, 1, CORDON_PIDS_MAX, ret_pids);

	return r < 0 ? limit_fail("number of processes", s, r, err, "a whole number from 1 to 4194304") : 0;
}

int cordon_cpus_parse(const char *s, uint64_t *ret_millis, struct cordon_error *err)
{
	static const char hint[] = "a number from 0.01 to 8192 with at most three decimals: 2, 0.5";
	const char *dot = strchr(s, '.');
	size_t decimals = dot ? strlen(dot + 1) : 0;
	uint64_t whole, part = 0, millis;
	char digits[8];
	int r;

	if (cordon_copy(digits, sizeof(digits), s, dot ? (size_t)(dot - s) : strlen(s)) < 0)
		return limit_fail("number of CPUs", s, -ERANGE, err, hint);
	r = cordon_parse_u64(digits, 0, CORDON_CPUS_MAX, &whole);
	if (r == 0 && dot)
		r = decimals > 3 ? -EINVAL : cordon_parse_u64(dot + 1, 0, 999, &part);
	if (r < 0)
		return limit_fail("number of CPUs", s, r, err, hint);
	for (; decimals < 3; decimals++)
		part *= 10;
	millis = whole * 1000 + part;
	if (millis < CORDON_CPU_MILLIS_MIN || millis > CORDON_CPUS_MAX * 1000)
		return limit_fail("number of CPUs", s, -ERANGE, err, hint);
	*ret_millis = millis;
	return 0;
}
