/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cordon tree: prints the tree as the agent would see it.
 *
 * It reads only what it prints, the names of each printed directory and the number of entries of each folded one. It
 * follows no link, and it holds no descriptor while it descends, so that depth costs nothing.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/manager.h"
#include "cli/run_options.h"
#include "cli/tree.h"
#include "config/net_setting.h"
#include "policy/shares.h"

#define DEPTH_DEFAULT 3
#define ENTRIES_TOP 60	 /* entries shown of the directory that was asked for */
#define ENTRIES_BELOW 20 /* entries shown of each directory below it */
#define LINES_MAX 1000	 /* after this many lines all further directories are folded */
#define NAMES_MAX 100000 /* entries read of one directory */
#define COUNT_MAX 10000	 /* entries counted in a folded directory */

enum { KEY_DEPTH, KEY_ALL };

static const struct cordon_option options[] = {
	CORDON_SCOPE_OPTIONS,
	CORDON_SHARE_OPTIONS,
	{ "depth", 'd', CORDON_ARG_TEXT, "N", "levels to show (default 3)", KEY_DEPTH },
	{ "all", 'a', CORDON_ARG_NONE, NULL, "fold nothing, leave nothing out", KEY_ALL },
	{ 0 },
};

struct args {
	struct cordon_run_options run;
	uint64_t depth;
	bool depth_given;
	bool all;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_run_options_own(key))
		return cordon_run_options_set(&args->run, key, arg, err);
	if (key == KEY_ALL) {
		args->all = true;
		return 0;
	}
	args->depth_given = true;
	if (cordon_parse_u64(arg, 1, CORDON_PATH_MAX, &args->depth) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--depth is a number from 1 on, not %s", arg);
	return 0;
}

struct entry {
	char *name;
	unsigned char type; /* DT_* */
	cordon_mark mark;
	bool notable; /* its mark differs from that of its directory, or something below it has another mark */
	bool hidden;
};

struct listing {
	struct entry *entries;
	size_t n;
	bool cut; /* the directory has more names than we read */
};

struct tree {
	const struct cordon_cli *cli;
	const struct cordon_policy *policy;
	uint64_t depth; /* 0: no limit */
	bool all;
	bool colour;
	size_t lines;
	size_t path_len;
	char path[CORDON_PATH_MAX]; /* path of the current entry, relative to the root */
	struct cordon_resolved resolved;
	struct cordon_decision decision;
};

/* ---- reading ---- */

static void listing_done(struct listing *listing)
{
	for (size_t i = 0; i < listing->n; i++)
		free(listing->entries[i].name);
	free(listing->entries);
	*listing = (struct listing){ 0 };
}

static int open_dir(const struct tree *t, DIR **ret_dir)
{
	int fd = cordon_open_beneath(t->policy->root.fd, t->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

	if (fd < 0)
		return fd;
	*ret_dir = fdopendir(fd);
	if (!*ret_dir)
		close(fd);
	return *ret_dir ? 0 : -errno;
}

static const struct dirent *next_entry(DIR *dir)
{
	const struct dirent *d;

	do
		d = readdir(dir);
	while (d && (cordon_streq(d->d_name, ".") || cordon_streq(d->d_name, "..")));
	return d;
}

static unsigned char type_of(DIR *dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN || fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return d->d_type;
	return (unsigned char)IFTODT(st.st_mode);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int read_dir(const struct tree *t, struct listing *listing)
{
	const struct dirent *d;
	DIR *dir;
	size_t room = 0;
	int r = open_dir(t, &dir);

	if (r < 0)
		return r;
	while (r == 0 && (d = next_entry(dir))) {
		if (listing->n == NAMES_MAX && !t->all) {
			listing->cut = true;
			break;
		}
		if (listing->n == room) {
			struct entry *more = reallocarray(listing->entries, room ? 2 * room : 64, sizeof(*more));

			if (!more) {
				r = -ENOMEM;
				break;
			}
			listing->entries = more;
			room = room ? 2 * room : 64;
		}
		listing->entries[listing->n] = (struct entry){ .name = strdup(d->d_name), .type = type_of(dir, d) };
		r = listing->entries[listing->n].name ? 0 : -ENOMEM;
		listing->n += r == 0;
	}
	closedir(dir);
	if (listing->n)
		qsort(listing->entries, listing->n, sizeof(*listing->entries), by_name);
	return r;
}

/* Counts the entries of the current directory, up to COUNT_MAX. Returns -errno when it can't be read. */
static int count_entries(const struct tree *t)
{
	DIR *dir;
	int n = 0, r = open_dir(t, &dir);

	if (r < 0)
		return r;
	while (n < COUNT_MAX && next_entry(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- judging ---- */

static bool push(struct tree *t, const char *name)
{
	size_t len = strlen(name), slash = t->path_len ? 1 : 0;

	if (t->path_len + slash + len >= sizeof(t->path))
		return false;
	if (slash)
		t->path[t->path_len] = '/';
	memcpy(t->path + t->path_len + slash, name, len + 1);
	t->path_len += slash + len;
	return true;
}

static void pop(struct tree *t, size_t len)
{
	t->path_len = len;
	t->path[len] = '\0';
}

/* Returns the mark of the current path. A link has the mark of the path that it leads to. */
static cordon_mark judge(struct tree *t, unsigned char type)
{
	if (type == DT_LNK) {
		cordon_resolve(&t->policy->root, t->path, &t->resolved);
	} else {
		t->resolved.place = CORDON_PLACE_INSIDE;
		t->resolved.exists = true;
		memcpy(t->resolved.path, t->path, t->path_len + 1);
	}
	return cordon_mark_of(t->policy, &t->resolved, &t->decision);
}

static void judge_all(struct tree *t, struct listing *listing, cordon_mark dir_mark)
{
	size_t len = t->path_len;
	const char *except;

	for (size_t i = 0; i < listing->n; i++) {
		struct entry *entry = &listing->entries[i];

		if (!push(t, entry->name)) {
			entry->mark = CORDON_MARK_DENIED;
			continue;
		}
		entry->mark = judge(t, entry->type);
		entry->notable = entry->mark != dir_mark ||
				 (entry->type == DT_DIR &&
				  !cordon_mark_uniform(t->policy, t->path, entry->mark, &except));
		pop(t, len);
	}
}

/* Hides the entries above the limit, and of these first the ones that have the mark of their directory. */
static size_t hide(const struct tree *t, struct listing *listing, size_t limit)
{
	size_t over = t->all || listing->n <= limit ? 0 : listing->n - limit;

	for (int notable = 0; notable <= 1; notable++) {
		for (size_t i = listing->n; over && i-- > 0;) {
			if (listing->entries[i].hidden || listing->entries[i].notable != notable)
				continue;
			listing->entries[i].hidden = true;
			over--;
		}
	}
	return t->all || listing->n <= limit ? 0 : listing->n - limit;
}

/* ---- printing ---- */

static void print_mark(const struct tree *t, cordon_mark mark, unsigned int level)
{
	static const char *const colours[] = { "\033[32m", "\033[36m", "\033[33m", "\033[35m", "\033[31m" };

	printf("%s%-9s%s %*s", t->colour ? colours[mark] : "", cordon_mark_name(mark), t->colour ? "\033[0m" : "",
	       (int)(2 * level), "");
}

static void print_name(const char *name, const char *after)
{
	autobuf struct cordon_buf safe = CORDON_BUF(8 * CORDON_PATH_MAX);

	if (cordon_text_escape(&safe, name, strlen(name)) == 0)
		printf("%s%s", safe.data, after);
}

/* Reads the text of the link at the current path. */
static void link_text(const struct tree *t, char text[static CORDON_PATH_MAX])
{
	char parent[CORDON_PATH_MAX];
	const char *base = cordon_path_base(t->path);
	size_t len = base == t->path ? 0 : (size_t)(base - t->path) - 1;
	autofd int fd = -1;
	ssize_t n = -1;

	if (cordon_copy(parent, sizeof(parent), t->path, len) == 0)
		fd = cordon_open_beneath(t->policy->root.fd, parent, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		n = readlinkat(fd, base, text, CORDON_PATH_MAX - 1);
	text[n < 0 ? 0 : n] = '\0';
}

static const char *type_name(unsigned char type)
{
	switch (type) {
	case DT_DIR:
		return "directory";
	case DT_LNK:
		return "link";
	case DT_REG:
		return "file";
	default:
		return "other";
	}
}

/* Prints one line, or adds an object to `into` and returns it (borrowed) for the children. */
static json_t *show_entry(struct tree *t, const char *name, unsigned char type, cordon_mark mark, unsigned int level,
			  json_t *into)
{
	char target[CORDON_PATH_MAX] = "";
	json_t *object = NULL;

	t->lines++;
	if (type == DT_LNK)
		link_text(t, target);
	if (into) {
		object = json_pack("{s:o, s:o, s:s, s:s}", "name", cordon_cli_json_text(name), "path",
				   cordon_cli_json_text(t->path), "type", type_name(type), "mark",
				   cordon_mark_name(mark));
		if (type == DT_LNK)
			json_object_set_new(object, "target", cordon_cli_json_text(target));
		json_array_append_new(into, object);
		return object;
	}
	print_mark(t, mark, level);
	print_name(name, type == DT_DIR ? "/" : type == DT_LNK ? " -> " : "");
	if (type == DT_LNK)
		print_name(target, "");
	return NULL;
}

/* Prints what follows the name of a folded directory: the number of its entries, and whether all have the same mark. */
static void show_folded(const struct tree *t, cordon_mark mark, bool uniform, const char *except, json_t *object)
{
	int n = mark == CORDON_MARK_DENIED && uniform ? 0 : count_entries(t);

	if (object) {
		json_object_set_new(object, "folded", json_true());
		json_object_set_new(object, "uniform", json_boolean(uniform && !except));
		if (mark != CORDON_MARK_DENIED || !uniform)
			json_object_set_new(object, "entries", n < 0 ? json_null() : json_integer(n));
		if (except)
			json_object_set_new(object, "except", cordon_cli_json_text(except));
		return;
	}
	if (mark == CORDON_MARK_DENIED && uniform) {
		putchar('\n');
		return;
	}
	if (n < 0)
		printf("  (cannot be read: %s", strerror(-n));
	else
		printf("  (%d%s %s", n, n == COUNT_MAX ? "+" : "", n == 1 ? "entry" : "entries");
	if (except) {
		printf(", except ");
		print_name(except, "");
	}
	printf("%s)\n", uniform ? "" : ", mixed");
}

static void show_hidden(const struct listing *listing, size_t hidden, unsigned int level, json_t *object)
{
	size_t by_mark[CORDON_MARK__MAX] = { 0 };

	if (!hidden && !listing->cut)
		return;
	for (size_t i = 0; i < listing->n; i++)
		by_mark[listing->entries[i].mark] += listing->entries[i].hidden;
	if (object) {
		json_object_set_new(object, "more", json_integer((json_int_t)hidden));
		json_object_set_new(object, "cut", json_boolean(listing->cut));
		return;
	}
	printf("%9s %*s\u2026 %zu%s more (", "", (int)(2 * (level + 1)), "", hidden, listing->cut ? "+" : "");
	for (size_t m = 0, said = 0; m < CORDON_MARK__MAX; m++)
		if (by_mark[m])
			printf("%s%zu %s", said++ ? ", " : "", by_mark[m], cordon_mark_name((cordon_mark)m));
	printf(")\n");
}

static void show_dir(struct tree *t, cordon_mark mark, unsigned int level, json_t *object);

/* A share covers what lies at its place in the root. Returns false when no share is mounted here. */
static bool show_share(const struct tree *t, json_t *object)
{
	const char *rest = "";
	const struct cordon_policy_share *share = cordon_share_at(t->policy, t->path, &rest);

	if (!share || *rest)
		return false;
	if (object) {
		json_object_set_new(object, "share", cordon_cli_json_text(share->source));
		return true;
	}
	printf("  (shows ");
	print_name(share->source, ")\n");
	return true;
}

/* Prints the shares outside the root, after the tree. */
static void show_other_shares(struct tree *t, json_t *object)
{
	json_t *array = object ? json_array() : NULL;

	for (size_t i = 0; i < t->policy->n_shares; i++) {
		const struct cordon_policy_share *share = &t->policy->shares[i];
		const char *target = share->home ? "~" : share->target;
		cordon_mark mark = share->read_only ? CORDON_MARK_RO : CORDON_MARK_RW;

		if (share->in_root)
			continue;
		if (array) {
			json_array_append_new(array, json_pack("{s:o, s:o, s:s}", "path", cordon_cli_json_text(target),
							       "share", cordon_cli_json_text(share->source), "mark",
							       cordon_mark_name(mark)));
			continue;
		}
		print_mark(t, mark, 0);
		print_name(target, "  (shows ");
		print_name(share->source, ")\n");
	}
	if (array)
		json_object_set_new(object, "shares", array);
}

/* The hosts that can be reached, after the files. */
static void show_net(const struct tree *t, json_t *object)
{
	const struct cordon_net_list *net = &t->policy->net;

	if (object) {
		json_object_set_new(object, "net", cordon_net_list_json(net));
		return;
	}
	if (!net->listed)
		return;
	printf("\nnetwork: %s\n", cordon_net_list_is_none(net) ? "none" : "these hosts and no others");
	for (size_t i = 0; i < net->n; i++)
		printf("  %s\n", net->rules[i].text);
	for (size_t i = 0; i < net->n_inject; i++)
		printf("  %s:%u  (by %s, with the credential in %s)\n", net->inject[i].host, net->inject[i].port,
		       net->inject[i].base_url_env, net->inject[i].from_env);
}

static void show_child(struct tree *t, const struct entry *entry, unsigned int level, json_t *into)
{
	const char *except = NULL;
	json_t *object;
	bool uniform;

	object = show_entry(t, entry->name, entry->type, entry->mark, level + 1, into);
	if (entry->type != DT_DIR) {
		if (!into)
			putchar('\n');
		return;
	}
	if (show_share(t, object))
		return;
	uniform = cordon_mark_uniform(t->policy, t->path, entry->mark, &except);
	if ((t->depth && level + 1 >= t->depth) || (!t->all && (uniform || t->lines >= LINES_MAX))) {
		show_folded(t, entry->mark, uniform, except, object);
		return;
	}
	if (!into)
		putchar('\n');
	show_dir(t, entry->mark, level + 1, object);
}

/* Prints the entries of the current directory, which is on `level`. */
static void show_dir(struct tree *t, cordon_mark mark, unsigned int level, json_t *object)
{
	struct listing listing CORDON_CLEANUP(listing_done) = { 0 };
	json_t *into = object ? json_array() : NULL;
	size_t len = t->path_len, hidden;
	int r = read_dir(t, &listing);

	if (r < 0) {
		if (object)
			json_object_set_new(object, "error", json_string(strerror(-r)));
		else
			printf("%9s %*s(cannot be read: %s)\n", "", (int)(2 * (level + 1)), "", strerror(-r));
	}
	judge_all(t, &listing, mark);
	hidden = hide(t, &listing, level ? ENTRIES_BELOW : ENTRIES_TOP);
	for (size_t i = 0; i < listing.n; i++) {
		if (listing.entries[i].hidden || !push(t, listing.entries[i].name))
			continue;
		show_child(t, &listing.entries[i], level, into);
		pop(t, len);
	}
	show_hidden(&listing, hidden, level, object);
	if (object)
		json_object_set_new(object, "children", into);
}

/* ---- the command ---- */

/* Makes PATH the current path. Returns -errno with err when it does not exist or lies outside. */
static int start_at(struct tree *t, const char *path, unsigned char *ret_type, struct cordon_error *err)
{
	struct cordon_resolved resolved;
	autofd int fd = -1;
	struct stat st;

	cordon_resolve(&t->policy->root, path, &resolved);
	if (resolved.place != CORDON_PLACE_INSIDE)
		return cordon_fail(err, -EXDEV, CORDON_KIND_POLICY_DENIED, "%s lies outside the root %s", path,
				   t->policy->root.path);
	fd = cordon_open_beneath(t->policy->root.fd, resolved.path, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cordon_fail_errno(err, fd < 0 ? fd : -errno, "cannot show %s", path);
	*ret_type = (unsigned char)IFTODT(st.st_mode);
	t->path_len = strlen(resolved.path);
	return cordon_copy(t->path, sizeof(t->path), resolved.path, t->path_len);
}

static int show(struct tree *t, const char *path)
{
	struct cordon_error err = { 0 };
	unsigned char type = DT_UNKNOWN;
	json_t *into, *object;
	cordon_mark mark;

	if (start_at(t, path, &type, &err) < 0)
		return cordon_cli_fail(t->cli, &err);
	mark = judge(t, type);
	into = t->cli->json ? json_array() : NULL;
	object = show_entry(t, t->path_len ? t->path : t->policy->root.path, type, mark, 0, into);
	if (!into)
		putchar('\n');
	if (type == DT_DIR)
		show_dir(t, mark, 0, object);
	if (t->policy->n_shares && !t->path_len)
		show_other_shares(t, object);
	if (!t->path_len)
		show_net(t, object);
	if (!into)
		return CORDON_EXIT_OK;
	json_incref(object);
	json_decref(into);
	json_object_set_new(object, "root", cordon_cli_json_text(t->policy->root.path));
	json_object_set_new(object, "mode", json_string(cordon_mode_name(t->policy->mode)));
	return cordon_cli_print_json(t->cli, object);
}

static int run_with(struct cordon_cli *cli, struct args *args, int argc, char **argv)
{
	struct cordon_policy *policy CORDON_CLEANUP(cordon_policy_freep) = NULL;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, args, &first, &err);
	struct tree t = { .cli = cli, .all = args->all, .colour = cordon_cli_colour(STDOUT_FILENO) };

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (argc - first > 1)
		return cordon_cli_usage(cli, "one path is expected, not %d", argc - first);
	r = cordon_run_options_policy(cli, &args->run, CORDON_RUN_ASKS, &policy);
	if (r)
		return r;
	t.policy = policy;
	t.all = args->all;
	t.depth = args->depth_given ? args->depth : args->all ? 0 : DEPTH_DEFAULT;
	return show(&t, first < argc ? argv[first] : ".");
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { .run.table = options };
	int r = run_with(cli, &args, argc, argv);

	cordon_run_options_done(&args.run);
	return r;
}

const struct cordon_command cordon_cmd_tree = {
	.name = "tree",
	.operands = "[PATH]",
	.summary = "show the tree as an agent would see it",
	.details = "Each entry is marked rw, ro, protected or denied, in permissive mode also warn. A directory in which\n"
		   "everything is alike is one line with the number of its entries; one below the depth that is not is called\n"
		   "mixed. After the files come the hosts that can be reached, if there is a list. Takes the options of\n"
		   "'cordon check' and judges as it does.\n",
	.options = options,
	.run = run,
};
