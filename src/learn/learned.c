/* SPDX-License-Identifier: Apache-2.0 */
/* Records what a run used, sorted into what is granted, what lies outside and what was refused; and writes the policy
 * file, checked to allow what the run used. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/text.h"
#include "base/time.h"
#include "config/policy_build.h"
#include "learn/learned.h"

/* ---- what the run used ---- */

int cordon_learned_init(struct cordon_learned *learned, const struct cordon_policy *policy, bool patterns,
			struct cordon_error *err)
{
	*learned = (struct cordon_learned){ .policy = policy,
					    .patterns = patterns,
					    .inside = cordon_learn_new(),
					    .outside = cordon_learn_new(),
					    .refused = cordon_learn_new() };
	return learned->inside && learned->outside && learned->refused
		       ? 0
		       : cordon_fail_errno(err, -ENOMEM, "learned paths");
}

void cordon_learned_done(struct cordon_learned *learned)
{
	cordon_learn_grants_done(&learned->grants);
	cordon_net_list_done(&learned->used);
	cordon_net_list_done(&learned->hosts);
	learned->inside = cordon_learn_free(learned->inside);
	learned->outside = cordon_learn_free(learned->outside);
	learned->refused = cordon_learn_free(learned->refused);
}

static unsigned int uses_of(const struct cordon_sight *sight)
{
	bool moves = cordon_streq(sight->op, "rename");
	bool goes = moves || cordon_streq(sight->op, "delete");
	unsigned int uses = sight->linked ? CORDON_LEARN_LINKED : 0;

	uses |= moves ? CORDON_LEARN_MOVED : 0;
	if (!sight->type)
		return sight->creates ? uses | CORDON_LEARN_MADE | CORDON_LEARN_WRITTEN : CORDON_LEARN_ABSENT;
	uses |= CORDON_LEARN_EXISTED | (S_ISDIR(sight->type) ? CORDON_LEARN_DIRECTORY : 0);
	if (goes)
		return uses | CORDON_LEARN_MADE | CORDON_LEARN_WRITTEN;
	/* With mkdir -p or O_EXCL, an existing name is only found to exist. */
	if (sight->writes && !cordon_streq(sight->op, "create"))
		return uses | CORDON_LEARN_WRITTEN;
	if (!S_ISDIR(sight->type))
		return uses | CORDON_LEARN_READ;
	return uses | (cordon_streq(sight->op, "read") ? CORDON_LEARN_LISTED : CORDON_LEARN_LOOKED);
}

/* Cuts the path behind its first missing component: what lies below that is missing, too. */
static void cut_missing(const struct cordon_root *root, char path[static CORDON_PATH_MAX])
{
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct stat st;
		bool missing;

		*slash = '\0';
		missing = fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
		if (missing)
			return;
		*slash = '/';
	}
}

void cordon_learned_sight(struct cordon_learned *learned, const struct cordon_sight *sight)
{
	unsigned int uses = uses_of(sight);
	struct cordon_decision decision;
	struct cordon_learn *set = learned->inside;
	char path[CORDON_PATH_MAX];
	int r;

	if (sight->place == CORDON_PLACE_OUTSIDE) {
		r = uses & CORDON_LEARN_ABSENT ? 0 : cordon_learn_add(learned->outside, sight->path + 1, uses);
	} else {
		memcpy(path, sight->path, strlen(sight->path) + 1);
		if (uses & CORDON_LEARN_ABSENT)
			cut_missing(&learned->policy->root, path);
		cordon_policy_decide(learned->policy, path,
				     uses & (CORDON_LEARN_WRITTEN | CORDON_LEARN_MADE) ? CORDON_OP_WRITE
										       : CORDON_OP_READ,
				     &decision);
		if (decision.verdict == CORDON_DENY)
			set = learned->refused;
		r = cordon_learn_add(set, path, uses);
	}
	learned->truncated |= r < 0;
}

void cordon_learned_host(struct cordon_learned *learned, const char *rule, bool used)
{
	autofree char *tcp = NULL;
	struct cordon_net_rule parsed;
	struct cordon_net_list *list = used ? &learned->used : &learned->hosts;

	/* A host that was reached by a rule with /tcp needs one with it again. */
	if (used && cordon_net_rule_parse(rule, strlen(rule), &parsed, NULL) == 0) {
		const struct cordon_net_rule *by = parsed.kind == CORDON_NET_KIND_ADDRESS
							   ? cordon_net_list_find_address(&learned->policy->net,
											  &parsed.address, parsed.port)
							   : cordon_net_list_find(&learned->policy->net, parsed.name,
										  parsed.port);

		if (by && by->tcp && asprintf(&tcp, "%s/tcp", rule) < 0)
			tcp = NULL;
	}
	learned->truncated |= cordon_net_list_parse(list, tcp ? tcp : rule, NULL, NULL) < 0;
}

/* ---- secrets that grants would open ---- */

struct search {
	struct cordon_learned *learned;
	struct cordon_pattern **grants;
	char **dirs; /* directories that are still to be read, relative to the root */
	size_t n, cap, looked;
	int64_t deadline;
};

static int push(struct search *search, const char *path)
{
	if (search->n == search->cap) {
		size_t cap = search->cap ? search->cap * 2 : 64;
		char **bigger = reallocarray(search->dirs, cap, sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		search->dirs = bigger;
		search->cap = cap;
	}
	search->dirs[search->n] = strdup(path);
	return search->dirs[search->n] ? (int)(search->n++, 0) : -ENOMEM;
}

static bool granted(const struct search *search, const char *path, bool leads)
{
	for (size_t i = 0; i < search->learned->grants.n; i++)
		if (cordon_pattern_match(search->grants[i], path, NULL) ||
		    (leads && cordon_pattern_leads(search->grants[i], path)))
			return true;
	return false;
}

static int look_at(struct search *search, const char *path, int dir_fd, const struct dirent *entry)
{
	struct stat st;
	bool directory = entry->d_type == DT_DIR;

	if (cordon_secret(path)) {
		int r = granted(search, path, false)
				? cordon_learn_add(search->learned->inside, path, CORDON_LEARN_EXISTED)
				: 0;

		return r == -E2BIG ? 0 : r;
	}
	if (entry->d_type == DT_UNKNOWN)
		directory = fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
	/* Nothing in .git is a key of the user. */
	return directory && !cordon_streq(entry->d_name, ".git") && granted(search, path, true) ? push(search, path) : 0;
}

static int read_dir(struct search *search, const char *dir)
{
	int fd = cordon_open_beneath(search->learned->policy->root.fd, dir,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(stream));) {
		char path[CORDON_PATH_MAX];

		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (++search->looked > CORDON_LEARNED_SEARCH_MAX ||
		    (search->looked % 256 == 0 && cordon_time_monotonic() > search->deadline)) {
			search->learned->unsearched = true;
			break;
		}
		if (cordon_path_join(dir, entry->d_name, path, sizeof(path)) == 0)
			r = look_at(search, path, dirfd(stream), entry);
	}
	closedir(stream);
	return r;
}

/* Adds secrets in the tree that the grants would open although the run did not use them. */
static int learned_find_secrets(struct cordon_learned *learned, struct cordon_error *err)
{
	size_t n = learned->grants.n;
	struct search search = { .learned = learned, .deadline = cordon_time_monotonic() + CORDON_LEARNED_SEARCH_MS };
	int r;

	search.grants = calloc(n + 1, sizeof(struct cordon_pattern *));
	r = search.grants ? 0 : cordon_fail_errno(err, -ENOMEM, "learned paths");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = cordon_pattern_compile(learned->grants.items[i].pattern, &search.grants[i], err);
	learned->unsearched = false;
	if (r == 0 && n && (r = push(&search, "")) < 0)
		cordon_fail_errno(err, r, "learned paths");
	while (r == 0 && search.n && !learned->unsearched) {
		autofree char *dir = search.dirs[--search.n];

		r = read_dir(&search, dir);
		if (r < 0)
			cordon_fail_errno(err, r, "learned paths");
	}
	while (search.n)
		free(search.dirs[--search.n]);
	free(search.dirs);
	for (size_t i = 0; search.grants && i < n; i++)
		cordon_pattern_free(search.grants[i]);
	free(search.grants);
	return r;
}

/* ---- the policy file ---- */

#define SHOWN_MAX 40 /* lines of one comment list */

/* The first error of an append stays in `r`, and is checked once, at the end. */
struct writer {
	struct cordon_buf *text;
	int r;
	struct cordon_learned *learned;
	const struct cordon_learned_from *from;
	size_t n;		     /* lines of the current list */
	struct cordon_learn *places; /* folders outside */
	char last[CORDON_PATH_MAX];
	bool last_writes;
	struct cordon_pattern **compiled; /* the compiled grants */
};

static void put(struct writer *w, const char *fmt, ...) CORDON_PRINTF(2, 3);
static void put(struct writer *w, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (w->r == 0)
		w->r = cordon_buf_addv(w->text, fmt, args);
	va_end(args);
}

/* Writes UTF-8 text as YAML text in double quotes. */
static void put_quoted(struct writer *w, const char *s)
{
	put(w, "\"");
	for (size_t len; *s; s += len) {
		unsigned char c = (unsigned char)*s;

		len = cordon_utf8_char(s, strlen(s));
		len = len ? len : 1;
		if (c == '"' || c == '\\')
			put(w, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			put(w, "\\u%04x", c);
		else if (cordon_text_safe(s, len))
			put(w, "%.*s", (int)len, s);
		else if (len == 2)
			put(w, "\\u%04x", (unsigned int)((c & 0x1f) << 6 | (s[1] & 0x3f)));
		else
			put(w, "\\u%04x", (unsigned int)((c & 0x0f) << 12 | (s[1] & 0x3f) << 6 | (s[2] & 0x3f)));
	}
	put(w, "\"");
}

static void put_escaped(struct writer *w, const char *s)
{
	if (w->r == 0)
		w->r = cordon_text_escape(w->text, s, strlen(s));
}

static void put_grants(struct writer *w, const char *key, cordon_access access)
{
	const struct cordon_learn_grants *grants = &w->learned->grants;
	bool first = true;

	for (size_t i = 0; i < grants->n; i++) {
		if (grants->items[i].access != access)
			continue;
		put(w, first ? "%s:\n  - " : "  - ", key);
		put_quoted(w, grants->items[i].pattern);
		put(w, grants->items[i].note ? "  # %s\n" : "\n", grants->items[i].note);
		first = false;
	}
}

/* Writes the rules of one kind; false when there are none. */
static bool put_rules(struct writer *w, const char *key, cordon_rule_kind kind)
{
	bool any = false;

	for (size_t i = 0; i < w->from->n_rules; i++) {
		if (w->from->rules[i].kind != kind)
			continue;
		put(w, any ? "  - " : "%s:\n  - ", key);
		put_quoted(w, w->from->rules[i].text);
		put(w, "\n");
		any = true;
	}
	return any;
}

static const char *verb_of(unsigned int uses)
{
	return uses & (CORDON_LEARN_WRITTEN | CORDON_LEARN_MADE) ? "written"
	       : uses & CORDON_LEARN_LISTED			 ? "listed"
	       : uses & CORDON_LEARN_READ			 ? "read"
								 : "looked at";
}

/* Denies a secret that one of the grants would open. */
static unsigned int deny_secret(void *data, const char *path, unsigned int uses)
{
	struct writer *w = data;
	autofree char *quoted = NULL;

	if (!cordon_secret(path) || uses & CORDON_LEARN_ABSENT)
		return 0;
	for (size_t i = 0; i < w->learned->grants.n; i++) {
		if (!cordon_pattern_match(w->compiled[i], path, NULL))
			continue;
		quoted = cordon_pattern_quote(path);
		if (!quoted) {
			w->r = -ENOMEM;
			return 0;
		}
		/* A byte that is not UTF-8 cannot be in a policy file. */
		for (char *p = quoted; *p;) {
			size_t len = cordon_utf8_char(p, strlen(p));

			if (!len)
				*p = '?';
			p += len ? len : 1;
		}
		put(w, w->n++ ? "  - " : "deny:\n  - ");
		put_quoted(w, quoted);
		put(w, "  # %s\n", cordon_secret(path));
		break;
	}
	return 0;
}

static bool within_limit(struct writer *w, const char *heading)
{
	if (w->n++ == 0)
		put(w, "\n%s", heading);
	if (w->n == SHOWN_MAX + 1)
		put(w, "#   ... and more\n");
	return w->n <= SHOWN_MAX;
}

static unsigned int list_secret(void *data, const char *path, unsigned int uses)
{
	struct writer *w = data;
	const char *sort = cordon_secret(path);

	if (!sort || uses & CORDON_LEARN_ABSENT || uses == CORDON_LEARN_EXISTED)
		return 0;
	w->learned->n_secrets++;
	if (!within_limit(w,
			  "# Not granted, because they look like secrets. If it must be, add them under ro by hand.\n"))
		return 0;
	put(w, "#   ");
	put_escaped(w, path);
	put(w, "  (%s, %s)\n", sort, verb_of(uses));
	return 0;
}

static unsigned int list_refused(void *data, const char *path, unsigned int uses)
{
	struct writer *w = data;

	if (uses & CORDON_LEARN_ABSENT ||
	    !within_limit(w, "# Refused in this run as in the next, because they are protected or denied.\n"))
		return 0;
	put(w, "#   ");
	put_escaped(w, path);
	put(w, "  (%s)\n", verb_of(uses));
	return 0;
}

/* Collects the folders of what was used outside. What a run makes for itself in /tmp and /var/tmp it can also make
 * in its private ones. The paths have no first slash. */
static unsigned int collect_outside(void *data, const char *path, unsigned int uses)
{
	struct writer *w = data;
	const char *base = cordon_path_base(path);
	char dir[CORDON_PATH_MAX];
	int r;

	if (cordon_copy(dir, sizeof(dir), path, base > path ? (size_t)(base - path - 1) : 0) < 0)
		return 0;
	if (*w->last && cordon_path_within(path, w->last))
		return 0;
	if (uses & CORDON_LEARN_MADE && (cordon_streq(dir, "tmp") || cordon_streq(dir, "var/tmp"))) {
		memcpy(w->last, path, strlen(path) + 1);
		return 0;
	}
	if (!(uses & (CORDON_LEARN_LISTED | CORDON_LEARN_READ | CORDON_LEARN_WRITTEN | CORDON_LEARN_MADE)))
		return 0;
	if (uses & CORDON_LEARN_DIRECTORY || cordon_secret(path))
		memcpy(dir, path, strlen(path) + 1);
	r = *dir && !cordon_streq(dir, "tmp") && !cordon_streq(dir, "var/tmp") ? cordon_learn_add(w->places, dir, uses)
									       : 0;
	w->r = w->r < 0 ? w->r : r;
	return 0;
}

static unsigned int list_outside(void *data, const char *path, unsigned int uses)
{
	struct writer *w = data;
	bool writes = uses & (CORDON_LEARN_WRITTEN | CORDON_LEARN_MADE);
	const char *secret = cordon_secret(path);

	/* A folder inside another one is not listed again. */
	if (*w->last && !secret && cordon_path_within(path, w->last) && (w->last_writes || !writes))
		return 0;
	w->learned->n_outside++;
	if (!within_limit(w,
			  "# Used outside the root, not granted. To show one, take it out of the comment.\n# share:\n"))
		return 0;
	put(w, secret ? "#   never: /" : "#   - \"/");
	put_escaped(w, path);
	if (secret) {
		put(w, "  (%s, %s)\n", secret, verb_of(uses));
		return 0;
	}
	put(w, "%s\"  # %s\n", writes ? "" : ":ro", verb_of(uses));
	memcpy(w->last, path, strlen(path) + 1);
	w->last_writes = writes;
	return 0;
}

static void put_outside(struct writer *w)
{
	w->places = cordon_learn_new();
	if (!w->places) {
		w->r = -ENOMEM;
		return;
	}
	w->last[0] = '\0';
	cordon_learn_each(w->learned->outside, collect_outside, w);
	w->last[0] = '\0';
	cordon_learn_each(w->places, list_outside, w);
	w->places = cordon_learn_free(w->places);
}

/* The program itself may lie in the home: what it consists of is shown, and nothing else of what is outside. */
static void put_program(struct writer *w)
{
	const struct cordon_profile_use *program = w->from->program;

	for (size_t i = 0; program && i < program->n_shares; i++) {
		autobuf struct cordon_buf share = CORDON_BUF(2 * CORDON_PATH_MAX);

		for (const char *p = program->shares[i].source; *p && w->r == 0; p++)
			w->r = *p == ':' ? cordon_buf_adds(&share, "\\:") : cordon_buf_addc(&share, *p);
		if (w->r == 0)
			w->r = cordon_buf_adds(&share, ":ro");
		put(w, i ? "  - " : "share:  # the program\n  - ");
		put_quoted(w, share.data ? share.data : "");
		put(w, "\n");
	}
	for (size_t i = 0; i < w->from->run->n_keep_env; i++)
		if (cordon_streq(w->from->run->keep_env[i], "PATH"))
			return;
	if (program && program->path) {
		autobuf struct cordon_buf path = CORDON_BUF(16 * CORDON_PATH_MAX);

		if (w->r == 0)
			w->r = cordon_buf_addf(&path, "%s:%s", program->path, CORDON_SANDBOX_PATH);
		put(w, "env:\n  PATH: ");
		put_quoted(w, path.data ? path.data : "");
		put(w, "\n");
	}
}

/* Whether the run used what this rule allows. */
static bool is_used(const struct cordon_net_list *used, const struct cordon_net_rule *rule)
{
	for (size_t i = 0; i < used->n; i++)
		if (cordon_net_rule_within(&used->rules[i], rule))
			return true;
	return false;
}

/* The hosts that the run connected to, and those that its list lacked. Rules that it did not need stand in the file as
 * comments. Where the run had the network of the host, nothing is known. */
static void put_net(struct writer *w)
{
	const struct cordon_net_list *had = &w->learned->policy->net, *lacked = &w->learned->hosts;
	const struct cordon_net_list *used = &w->learned->used;

	if (!had->listed && w->from->run->net != CORDON_NET_NONE)
		return;
	put(w, used->n || lacked->n ? "net:\n" : "net: none\n");
	for (size_t i = 0; i < used->n; i++)
		put(w, "  - \"%s\"\n", used->rules[i].text);
	for (size_t i = 0; i < lacked->n; i++)
		put(w, "  - \"%s\"  # was asked for, and refused in this run\n", lacked->rules[i].text);
	for (size_t i = 0; i < had->n; i++)
		if (!is_used(used, &had->rules[i]))
			put(w, "#  - \"%s\"  # was allowed, and not used in this run\n", had->rules[i].text);
}

static void put_settings(struct writer *w)
{
	const struct cordon_run_spec *run = w->from->run;

	if (w->from->no_default_protection)
		put(w, "default_protect: false\n");
	put_rules(w, "protect", CORDON_RULE_PROTECT);
	put_rules(w, "unprotect", CORDON_RULE_UNPROTECT);
	if (run->at) {
		put(w, "at: ");
		put_quoted(w, run->at);
		put(w, "\n");
	}
	put_net(w);
	for (size_t i = 0; i < run->n_keep_env; i++)
		put(w, "%s  - %s\n", i ? "" : "keep_env:\n", run->keep_env[i]);
	/* Values from the command line may be secrets, and directories of the host may exist on this machine only. */
	if (run->n_env || w->from->shares)
		put(w, "# --env, --home and --share are not written down; give them to cordon run again.\n");
}

static void put_head(struct writer *w)
{
	char *const *argv = w->from->run->argv;
	char now[CORDON_TIME_SIZE];

	cordon_time_format(cordon_time_now(), now);
	put(w, "# Learned by cordon learn on %.10s from:", now);
	for (size_t i = 0; i < 16 && argv[i]; i++) {
		char shown[200];

		cordon_text_escape_fixed(shown, sizeof(shown), argv[i], strlen(argv[i]));
		put(w, " %s", shown);
	}
	put(w, "\n# Read it, then: cordon run ");
	if (w->from->profiles)
		put(w, "--profile %s ", w->from->profiles);
	put(w, "--policy ");
	put_escaped(w, w->from->output ? w->from->output : "FILE");
	put(w, " -- ...\nversion: 1\nmode: strict\n");
}

static bool all_literal(struct writer *w)
{
	for (size_t i = 0; i < w->learned->grants.n; i++)
		for (size_t j = 0; j < cordon_pattern_alternatives(w->compiled[i]); j++)
			if (!cordon_pattern_literal(w->compiled[i], j))
				return false;
	return true;
}

static int write_text(struct writer *w)
{
	struct cordon_learned *learned = w->learned;

	put_head(w);
	if (learned->grants.by_name && all_literal(w))
		put(w, "lens: always  # names come and go, or are reached through links\n");
	put_grants(w, "rw", CORDON_ACCESS_WRITE);
	put_grants(w, "ro", CORDON_ACCESS_READ);
	w->n = 0;
	if (!learned->grants.n) {
		/* INVARIANT: a policy without a scope grants the whole root, so "nothing" must be written as a
		 * denial. */
		put(w, "deny:\n  - \"**\"  # nothing of the root was used\n");
	} else {
		w->n = put_rules(w, "deny", CORDON_RULE_DENY) ? 1 : 0;
		cordon_learn_each(learned->inside, deny_secret, w);
		if (learned->unsearched)
			put(w, "# The tree is too large to look for secrets everywhere: see that no grant opens one.\n");
	}
	put_settings(w);
	put_program(w);
	w->n = 0;
	learned->n_secrets = learned->n_outside = 0;
	cordon_learn_each(learned->inside, list_secret, w);
	w->n = 0;
	cordon_learn_each(learned->refused, list_refused, w);
	w->n = 0;
	put_outside(w);
	return w->r;
}

/* Compiles the grants and writes the whole text. */
static int render(struct cordon_learned *learned, const struct cordon_learned_from *from, struct cordon_buf *text,
		  struct cordon_error *err)
{
	struct writer w = { .text = text, .learned = learned, .from = from };
	int r = 0;

	cordon_buf_reset(text);
	w.compiled = calloc(learned->grants.n + 1, sizeof(struct cordon_pattern *));
	if (!w.compiled)
		return cordon_fail_errno(err, -ENOMEM, "learned policy");
	for (size_t i = 0; r == 0 && i < learned->grants.n; i++)
		r = cordon_pattern_compile(learned->grants.items[i].pattern, &w.compiled[i], err);
	if (r == 0 && (r = write_text(&w)) < 0)
		cordon_fail_errno(err, r, "learned policy");
	for (size_t i = 0; i < learned->grants.n; i++)
		cordon_pattern_free(w.compiled[i]);
	free(w.compiled);
	return r;
}

struct fallback {
	struct cordon_learned *learned;
	int round;
	int r;
};

/* Grants what the text still refuses by its own name, and if that does not help either, by the name of its folder. */
static void widen(void *data, const char *path, cordon_access access)
{
	struct fallback *fallback = data;
	char wider[CORDON_PATH_MAX];
	const char *base = cordon_path_base(path);

	if (fallback->round > 0 && base > path && cordon_copy(wider, sizeof(wider), path, (size_t)(base - path - 1)) == 0)
		path = wider;
	if (fallback->r == 0)
		fallback->r = cordon_learn_grant_add(&fallback->learned->grants, path, access, NULL);
}

/* Counts the recorded accesses that the text would refuse, and reads the text as `cordon run --policy` does. */
static int refused_by(const struct cordon_buf *text, struct fallback *fallback, size_t *ret_refused,
		      struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_policy_file *file CORDON_CLEANUP(cordon_policy_file_freep) = NULL;
	struct cordon_policy *policy CORDON_CLEANUP(cordon_policy_freep) = NULL;
	struct cordon_policy_spec spec = { .root = fallback->learned->policy->root.path };
	int r = cordon_policy_file_parse("the learned policy", CORDON_FORMAT_YAML, text->data, text->len, &file,
					 &errors);

	if (r == 0) {
		spec.file = file;
		spec.mode = (cordon_mode)cordon_recipe_value(&file->values, CORDON_RECIPE_MODE);
		r = cordon_policy_build(&spec, &policy, &errors);
	}
	if (r < 0)
		return cordon_fail(err, r, CORDON_KIND_INTERNAL, "the learned policy is not valid: %s",
				   errors.n ? errors.items[0].message : "out of memory");
	*ret_refused = cordon_learn_check(fallback->learned->inside, policy, fallback->learned->grants.lens, widen,
					  fallback);
	return fallback->r < 0 ? cordon_fail_errno(err, fallback->r, "learned policy") : 0;
}

/* For a name that the run made: whether it is gone now, or is a directory. */
static unsigned int mark_outcome(void *data, const char *path, unsigned int uses)
{
	const struct cordon_learned *learned = data;
	struct stat st;

	if (!(uses & CORDON_LEARN_MADE))
		return 0;
	if (fstatat(learned->policy->root.fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return CORDON_LEARN_GONE;
	return S_ISDIR(st.st_mode) ? CORDON_LEARN_DIRECTORY : 0;
}

int cordon_learned_text(struct cordon_learned *learned, const struct cordon_learned_from *from,
			struct cordon_buf *ret_text, struct cordon_error *err)
{
	struct cordon_resolved cwd;
	size_t refused = 1;
	int r;

	cordon_resolve(&learned->policy->root, from->run->cwd ? from->run->cwd : ".", &cwd);
	r = cwd.place == CORDON_PLACE_INSIDE
		    ? cordon_learn_add(learned->inside, cwd.path, CORDON_LEARN_LOOKED | CORDON_LEARN_DIRECTORY)
		    : 0;
	if (r < 0 && r != -E2BIG)
		return cordon_fail_errno(err, r, "learned paths");
	cordon_learn_each(learned->inside, mark_outcome, learned);
	r = cordon_learn_grants(learned->inside, learned->patterns, &learned->grants, err);
	for (int round = 0; r == 0 && refused && round < 4; round++) {
		struct fallback fallback = { .learned = learned, .round = round };

		r = learned_find_secrets(learned, err);
		if (r == 0)
			r = render(learned, from, ret_text, err);
		if (r == 0)
			r = refused_by(ret_text, &fallback, &refused, err);
	}
	if (r == 0 && refused)
		return cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "no policy was found that allows all that was used");
	return r;
}
