/* SPDX-License-Identifier: Apache-2.0 */
/* The only way to build a policy: from rules, a policy file, and what is protected by default. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "config/managed.h"
#include "config/policy_build.h"
#include "protect/defaults.h"
#include "protect/links.h"
#include "protect/secrets.h"

struct build {
	const struct cordon_policy_spec *spec;
	struct cordon_policy *policy;
	struct cordon_errors *errors;
	int code;			    /* of the first fault, or 0 */
	struct cordon_protect_list secrets; /* which the run must not see */
};

static void report(struct build *b, struct cordon_error *err)
{
	if (!b->code)
		b->code = err->code;
	cordon_errors_add(b->errors, err, NULL, 0, 0);
}

/* An error in the value of an option is wrong usage; something that the tree makes impossible is a refusal. */
static void report_rule(struct build *b, struct cordon_error *err, const struct cordon_policy_rule *rule)
{
	if (err->kind == CORDON_KIND_CONFIG)
		err->kind = CORDON_KIND_USAGE;
	cordon_error_prefix(err, err->code, "%s", rule->where);
	report(b, err);
}

/* Finds the end of the pattern that starts here: a comma that is not in braces and not escaped, or the end of the
 * text. */
static const char *pattern_end(const char *s)
{
	unsigned int depth = 0;

	for (; *s && (*s != ',' || depth); s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (*s == '{')
			depth++;
		else if (*s == '}' && depth)
			depth--;
	}
	return s;
}

static int add_patterns(struct cordon_policy *fence, const char *list, const char *where, struct cordon_error *err)
{
	for (const char *at = list;; at++) {
		const char *end = pattern_end(at);
		autofree char *pattern = NULL;
		int r;

		while (*at == ' ')
			at++;
		pattern = strndup(at, at < end ? (size_t)(end - at) : 0);
		if (!pattern)
			return cordon_fail_errno(err, -ENOMEM, "cannot add a fence");
		r = cordon_policy_add_grant(fence, pattern, CORDON_ACCESS_WRITE, where, err);
		if (r < 0 || !*end)
			return r;
		at = end;
	}
}

static int add_fence(struct cordon_policy *policy, const char *list, const char *where, struct cordon_error *err)
{
	autobuf struct cordon_buf name = CORDON_BUF((size_t)2 * CORDON_PATTERN_MAX);
	struct cordon_policy *fence = NULL;
	int r = cordon_policy_new_like(policy, &fence, err);

	if (r == 0)
		r = add_patterns(fence, list, where, err);
	if (r == 0 && cordon_buf_addf(&name, "%s %s", where, list) < 0)
		r = cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the list of patterns is too long");
	if (r < 0) {
		cordon_policy_free(fence);
		return r;
	}
	/* The fence has no mode of its own, so it gets the policy's. */
	cordon_policy_set_mode(fence, CORDON_MODE_PERMISSIVE);
	return cordon_policy_fence(policy, name.data, fence, err);
}

static void add_rule(struct build *b, const struct cordon_policy_rule *rule)
{
	struct cordon_error err = { 0 };
	int r = 0;

	switch (rule->kind) {
	case CORDON_RULE_FOLDERS:
		r = cordon_policy_grant_folders(b->policy, rule->text, &err);
		break;
	case CORDON_RULE_WRITE:
		r = cordon_policy_add_grant(b->policy, rule->text, CORDON_ACCESS_WRITE, rule->where, &err);
		break;
	case CORDON_RULE_READ:
		r = cordon_policy_add_grant(b->policy, rule->text, CORDON_ACCESS_READ, rule->where, &err);
		break;
	case CORDON_RULE_DENY:
		r = cordon_policy_add_grant(b->policy, rule->text, CORDON_ACCESS_NONE, rule->where, &err);
		break;
	case CORDON_RULE_WITHIN:
		r = add_fence(b->policy, rule->text, rule->where, &err);
		break;
	case CORDON_RULE_PROTECT:
		r = cordon_policy_add_protected(b->policy, rule->text, rule->where, false, &err);
		break;
	case CORDON_RULE_NET:	    /* taken together in net_build.c */
	case CORDON_RULE_UNPROTECT: /* handled when the built-in list is added */
		break;
	}
	if (r < 0)
		report_rule(b, &err, rule);
}

/* ---- the built-in list ---- */

/* Whether the path or something below it is on the list. */
static bool in_list(const struct cordon_protect_list *list, const char *path)
{
	for (size_t i = 0; i < list->n; i++)
		if (cordon_path_within(list->paths[i], path))
			return true;
	return false;
}

/* The same for the table, in which some rows do not apply to this root. */
static bool in_table(const char *path)
{
	size_t n;
	const struct cordon_protect_row *rows = cordon_protect_rows(&n);

	for (size_t i = 0; i < n; i++)
		if (cordon_path_within(rows[i].path, path))
			return true;
	return false;
}

static const struct cordon_protected *find_explicit(const struct cordon_policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_protected; i++)
		if (!policy->protected_paths[i].by_default && cordon_streq(policy->protected_paths[i].path, path))
			return &policy->protected_paths[i];
	return NULL;
}

/* Suggests what the user may have meant by a path that is not on the list: a listed path above it. */
static void hint_at_listed(const struct cordon_protect_list *list, const char *path, struct cordon_error *err)
{
	for (size_t i = 0; i < list->n; i++) {
		if (!cordon_path_within(path, list->paths[i]))
			continue;
		cordon_error_hint(err, "what is protected is %s", list->paths[i]);
		return;
	}
	cordon_error_hint(err, "'cordon why %s' says which rule decides about it", path);
}

/* Checks one path that the user wants to remove from the built-in lists with everything below it; `ret_clean` gets
 * its clean form. */
static int unprotect(struct build *b, const struct cordon_protect_list *list, const char *path,
		     char ret_clean[static CORDON_PATH_MAX], struct cordon_error *err)
{
	const struct cordon_protected *explicit;
	int r = cordon_protected_clean(path, ret_clean, err);

	if (r < 0)
		return r;
	explicit = find_explicit(b->policy, ret_clean);
	if (explicit) {
		r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s is protected because it was asked for (%s)",
				ret_clean, explicit->where ? explicit->where : "protect");
		cordon_error_hint(err, "leave one of the two out");
		return r;
	}
	if (in_list(list, ret_clean) || in_list(&b->secrets, ret_clean) || in_table(ret_clean))
		return 0;
	r = cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s is not protected by default", ret_clean);
	hint_at_listed(list, ret_clean, err);
	return r;
}

/* Paths that must not be protected, from rules and from the file. */
struct lifted {
	char (*paths)[CORDON_PATH_MAX];
	size_t n;
};

/* The policy file and the profiles, one after the other; NULL behind the last one. */
static const struct cordon_policy_file *file_of(const struct cordon_policy_spec *spec, size_t i)
{
	if (i < spec->n_profiles)
		return spec->profiles[i];
	return i == spec->n_profiles ? spec->file : NULL;
}

static void lift_settings(struct build *b, const struct cordon_protect_list *list,
			  const struct cordon_policy_file *file, struct lifted *ret)
{
	for (size_t i = 0; i < file->unprotect.n; i++) {
		const struct cordon_setting *setting = &file->unprotect.items[i];
		struct cordon_error fault = { 0 };

		if (unprotect(b, list, setting->text, ret->paths[ret->n++], &fault) == 0)
			continue;
		if (fault.kind == CORDON_KIND_USAGE)
			fault.kind = CORDON_KIND_CONFIG;
		if (!b->code)
			b->code = fault.code;
		cordon_errors_add(b->errors, &fault, file->doc->name, setting->line, setting->column);
	}
}

static int find_lifted(struct build *b, const struct cordon_protect_list *list, struct lifted *ret,
		       struct cordon_error *err)
{
	const struct cordon_policy_file *file;
	size_t n = 0;

	for (size_t i = 0; (file = file_of(b->spec, i)); i++)
		n += file->unprotect.n;
	for (size_t i = 0; i < b->spec->n_rules; i++)
		n += b->spec->rules[i].kind == CORDON_RULE_UNPROTECT;
	if (!n)
		return 0;
	ret->paths = calloc(n, sizeof(*ret->paths));
	if (!ret->paths)
		return cordon_fail_errno(err, -ENOMEM, "cannot read what is not to be protected");
	for (size_t i = 0; i < b->spec->n_rules; i++) {
		struct cordon_error fault = { 0 };

		if (b->spec->rules[i].kind == CORDON_RULE_UNPROTECT &&
		    unprotect(b, list, b->spec->rules[i].text, ret->paths[ret->n++], &fault) < 0)
			report_rule(b, &fault, &b->spec->rules[i]);
	}
	for (size_t i = 0; (file = file_of(b->spec, i)); i++)
		lift_settings(b, list, file, ret);
	return 0;
}

static bool is_lifted(const struct lifted *lifted, const char *path)
{
	for (size_t i = 0; i < lifted->n; i++)
		if (cordon_path_within(path, lifted->paths[i]))
			return true;
	return false;
}

/* Whether a path of the list exists, or lies in a git directory. */
static bool is_present(const struct cordon_root *place, struct cordon_names *names, const char *path)
{
	return strncmp(path, ".git/", 5) == 0 || strstr(path, "/.git/") ||
	       (!cordon_names_lack(names, path) && faccessat(place->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

/* Adds the built-in list of a directory in the root: the list that it would have if it were the root. */
static int protect_below(struct build *b, const char *dir, bool only_present, const struct lifted *lifted,
			 struct cordon_error *err)
{
	struct cordon_root place = { .fd = cordon_open_beneath(b->policy->root.fd, dir,
							       O_PATH | O_DIRECTORY | O_CLOEXEC) };
	CORDON_UNCLEARED struct cordon_names names;
	struct cordon_protect_list list = { 0 };
	int r = 0;

	if (place.fd < 0)
		return place.fd == -ENOENT ? 0 : cordon_fail_errno(err, place.fd, "cannot open %s", dir);
	cordon_names_init(&names, place.fd);
	if (cordon_path_join(b->policy->root.path, dir, place.path, sizeof(place.path)) < 0)
		r = cordon_fail_errno(err, -ENAMETOOLONG, "%s", dir);
	if (r == 0)
		r = cordon_protect_defaults_among(&place, &names, &list, err);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		char path[CORDON_PATH_MAX];

		if (is_lifted(lifted, list.paths[i]) || (only_present && !is_present(&place, &names, list.paths[i])))
			continue;
		r = cordon_path_join(dir, list.paths[i], path, sizeof(path)) < 0
			    ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", dir)
			    : cordon_policy_add_protected(b->policy, path, CORDON_PROTECTED_BY_DEFAULT, true, err);
	}
	cordon_protect_list_done(&list);
	cordon_root_done(&place);
	return r;
}

/* Hides a known secret. Where it is a link, what it leads to is hidden, and the link stays as it is. */
static int hide_secret(struct build *b, const char *path, struct cordon_error *err)
{
	CORDON_UNCLEARED struct cordon_resolved found;
	autofree char *pattern = NULL;
	int r = 0;

	cordon_resolve(&b->policy->root, path, &found);
	if (found.place != CORDON_PLACE_INSIDE || !cordon_streq(found.path, path))
		r = cordon_policy_add_protected(b->policy, path, CORDON_DENIED_BY_DEFAULT, true, err);
	if (r < 0 || found.place != CORDON_PLACE_INSIDE || !*found.path)
		return r;
	/* A link to a directory above itself: nothing but the link is the secret. */
	if (!cordon_streq(found.path, path) && cordon_path_within(path, found.path))
		return 0;
	pattern = cordon_pattern_quote(found.path);
	return pattern ? cordon_policy_add_grant(b->policy, pattern, CORDON_ACCESS_NONE, CORDON_DENIED_BY_DEFAULT, err)
		       : cordon_fail_errno(err, -ENOMEM, "cannot hide %s", path);
}

/* Finds the secrets before what the user lifts is judged. */
static int find_secrets(struct build *b, struct cordon_error *err)
{
	bool asked = b->spec->deny_secrets ||
		     (b->spec->file && cordon_recipe_value(&b->spec->file->values, CORDON_RECIPE_DENY_SECRETS));

	if (b->spec->shows_secrets)
		return 0;
	return cordon_secrets_in(&b->policy->root, asked, &b->secrets, &b->policy->has_home, err);
}

static void add_defaults(struct build *b)
{
	bool off = b->spec->no_default_protection;
	const struct cordon_policy_file *file;
	struct cordon_protect_list list = { 0 };
	struct lifted lifted = { 0 };
	CORDON_UNCLEARED struct cordon_names names;
	struct cordon_error err = { 0 };
	int r = 0;

	for (size_t i = 0; (file = file_of(b->spec, i)); i++)
		off |= !cordon_recipe_value(&file->values, CORDON_RECIPE_DEFAULT_PROTECT);
	cordon_names_init(&names, b->policy->root.fd);
	b->policy->names = &names;
	if (!off)
		r = cordon_protect_defaults_among(&b->policy->root, &names, &list, &err);
	if (r == 0)
		r = find_secrets(b, &err);
	/* Also without a list: a mistake in what is to be unprotected is reported anyway. */
	if (r == 0)
		r = find_lifted(b, &list, &lifted, &err);
	for (size_t i = 0; r == 0 && i < list.n; i++)
		if (!is_lifted(&lifted, list.paths[i]))
			r = cordon_policy_add_protected(b->policy, list.paths[i], CORDON_PROTECTED_BY_DEFAULT, true,
							&err);
	for (size_t i = 0; r == 0 && !off && i < b->spec->n_defaults_below; i++)
		r = protect_below(b, b->spec->defaults_below[i],
				  i >= b->spec->n_defaults_below - b->spec->n_present_below, &lifted, &err);
	for (size_t i = 0; r == 0 && i < b->secrets.n; i++)
		if (!is_lifted(&lifted, b->secrets.paths[i]))
			r = hide_secret(b, b->secrets.paths[i], &err);
	if (r < 0)
		report(b, &err);
	b->policy->names = NULL;
	cordon_protect_list_done(&list);
	cordon_protect_list_done(&b->secrets);
	free(lifted.paths);
}

/* ---- the policy file itself ---- */

/* Protects `path` below the absolute path `place`, if that lies in the root. */
static int protect_place(struct build *b, const char *place, const char *path, struct cordon_error *err)
{
	char joined[CORDON_PATH_MAX], clean[CORDON_PATH_MAX];

	if (!cordon_path_within(place, b->policy->root.path))
		return 0;
	place += strlen(b->policy->root.path);
	while (*place == '/')
		place++;
	/* A path with ".." cannot be a protected path; protect at least the link before it. */
	if (cordon_path_join(place, path, joined, sizeof(joined)) < 0 ||
	    cordon_path_clean(joined, clean, sizeof(clean)) < 0)
		return cordon_policy_add_protected(b->policy, place, "the policy file itself", true, err);
	return *clean ? cordon_policy_add_protected(b->policy, clean, "the policy file itself", true, err) : 0;
}

struct file_walk {
	struct build *build;
	struct cordon_error *err;
};

/* Protects a link on the way to the policy file, by the path that goes on behind it. */
static ssize_t protect_link(void *data, const char *place, const char *rest, char ret[static CORDON_PATH_MAX])
{
	const struct file_walk *walk = data;
	ssize_t n = readlink(place, ret, CORDON_PATH_MAX - 1);

	if (n <= 0)
		return 0;
	ret[n] = '\0';
	return protect_place(walk->build, place, rest, walk->err) < 0 ? walk->err->code : n;
}

/* If the agent could change the policy file, it could give itself any right at the next run. So the path that the user
 * gave is protected, each link on the way, and the file that they lead to, as far as they lie in the root. */
static int protect_file(struct build *b, const char *path, struct cordon_error *err)
{
	struct file_walk walk = { b, err };
	char place[CORDON_PATH_MAX];
	int r = cordon_path_walk(path, protect_link, &walk, place);

	if (r == -ELOOP)
		return 0; /* it leads nowhere, and each of its links is protected */
	if (r < 0)
		return err->code ? r : cordon_fail_errno(err, r, "%s", path);
	return protect_place(b, place, "", err);
}

int cordon_policy_protect_defaults(struct cordon_policy *policy, struct cordon_error *err)
{
	struct cordon_protect_list list = { 0 };
	int r = cordon_protect_defaults(&policy->root, &list, err);

	for (size_t i = 0; r == 0 && i < list.n; i++)
		r = cordon_policy_add_protected(policy, list.paths[i], CORDON_PROTECTED_BY_DEFAULT, true, err);
	cordon_protect_list_done(&list);
	return r < 0 ? r : cordon_protect_links_add(policy, err);
}

int cordon_policy_build(const struct cordon_policy_spec *spec, struct cordon_policy **ret_policy,
			struct cordon_errors *errors)
{
	struct build b = { .spec = spec, .errors = errors };
	const struct cordon_policy_file *file;
	struct cordon_error err = { 0 };
	int r = cordon_policy_new(spec->root, &b.policy, &err);

	if (r < 0) {
		report(&b, &err);
		return r;
	}
	for (size_t i = 0; (file = file_of(spec, i)); i++) {
		r = cordon_policy_file_apply(file, b.policy, errors);
		b.code = b.code ? b.code : r;
	}
	for (size_t i = 0; i < spec->n_rules; i++)
		add_rule(&b, &spec->rules[i]);
	if (cordon_net_build(spec, b.policy->root.path, &b.policy->net, &err) < 0)
		report(&b, &err);
	/* Before the built-in list, of which nobody can lift what the machine's owner protects. */
	if (!b.code && (r = cordon_managed_fence(spec->managed, b.policy, errors)) < 0)
		b.code = r;
	b.policy->read_only |= spec->read_only;
	b.policy->reports_reads |= spec->reports_reads;
	add_defaults(&b);
	if (spec->file_path && protect_file(&b, spec->file_path, &err) < 0)
		report(&b, &err);
	if (!b.code && cordon_protect_links_add(b.policy, &err) < 0)
		report(&b, &err);
	cordon_policy_set_mode(b.policy, spec->mode);
	if (b.code) {
		cordon_policy_free(b.policy);
		return b.code;
	}
	*ret_policy = b.policy;
	return 0;
}
