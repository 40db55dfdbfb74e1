/* SPDX-License-Identifier: Apache-2.0 */
/* The fence of the machine's owner around every policy. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "config/managed.h"

static int report(struct cordon_errors *errors, struct cordon_error *err)
{
	cordon_error_hint(err, "no run starts until root has mended %s, or removed it", CORDON_MANAGED_PATH);
	return cordon_errors_add(errors, err, CORDON_MANAGED_PATH, 0, 0);
}

/* Whether nobody but root can have written it. */
static int check_owner(int fd, mode_t type, const char *what, struct cordon_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot look at %s", what);
	if ((st.st_mode & S_IFMT) != type)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "%s is no %s", what,
				   type == S_IFDIR ? "directory" : "file");
	if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return cordon_fail(err, -EPERM, CORDON_KIND_CONFIG,
				   "%s must belong to root, and nobody else may be able to write it", what);
	return 0;
}

/* Returns 1 when there is no file. */
static int read_text(struct cordon_buf *ret_text, struct cordon_error *err)
{
	autofd int dir = open(CORDON_MANAGED_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	int r;

	if (dir < 0)
		return errno == ENOENT ? 1 : cordon_fail_errno(err, -errno, "cannot open %s", CORDON_MANAGED_DIR);
	fd = openat(dir, cordon_path_base(CORDON_MANAGED_PATH), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 1 : cordon_fail_errno(err, -errno, "cannot open %s", CORDON_MANAGED_PATH);
	r = check_owner(dir, S_IFDIR, CORDON_MANAGED_DIR, err);
	if (r == 0)
		r = check_owner(fd, S_IFREG, CORDON_MANAGED_PATH, err);
	return r < 0 ? r : cordon_read_fd(fd, CORDON_MANAGED_PATH, ret_text, err);
}

/* Keys that give something have no place in a fence. */
static void check_keys(const struct cordon_policy_file *file, struct cordon_errors *errors)
{
	static const char *const known[] = { "version", "mode",	     "rw",	"ro",  "deny",
					     "within",	"read_only", "protect", "net", "share" };

	for (const struct cordon_node *node = file->doc->root->first; node; node = node->next) {
		bool found = false;

		for (size_t i = 0; i < CORDON_ARRAY_SIZE(known); i++)
			found |= cordon_streq(node->key->text, known[i]);
		if (!found)
			cordon_node_fail(file->doc, node->key, errors,
					 "known are version, mode, rw, ro, deny, within, read_only, protect, net, share",
					 "%s narrows nothing, and can't stand here", node->key->text);
	}
	if (file->net.word && cordon_streq(file->net.word, CORDON_NET_WORD_PROFILE))
		cordon_node_fail(file->doc, cordon_node_get(file->doc->root, "net"), errors,
				 "write a list of hosts, or none", "net: the profiles are the users' own");
}

int cordon_managed_load(struct cordon_policy_file **ret_file, struct cordon_errors *errors)
{
	CORDON_CLEANUP(cordon_policy_file_freep) struct cordon_policy_file *file = NULL;
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_CONFIG_SIZE_MAX + 1);
	size_t before = errors->n + errors->dropped;
	struct cordon_error err = { 0 };
	int r = read_text(&text, &err);

	if (r > 0) {
		*ret_file = NULL;
		return 0;
	}
	if (r < 0)
		return report(errors, &err);
	r = cordon_policy_file_parse(CORDON_MANAGED_PATH, CORDON_FORMAT_YAML, text.data ? text.data : "", text.len,
				     &file, errors);
	if (r == 0)
		check_keys(file, errors);
	if (r == 0 && errors->n + errors->dropped > before)
		r = -EINVAL;
	if (r == 0)
		*ret_file = cordon_steal_ptr(&file);
	return r;
}

int cordon_managed_fence(const struct cordon_policy_file *managed, struct cordon_policy *policy,
			 struct cordon_errors *errors)
{
	struct cordon_policy *fence CORDON_CLEANUP(cordon_policy_freep) = NULL;
	struct cordon_error err = { 0 };
	bool scoped, strict;
	int r;

	if (!managed)
		return 0;
	r = cordon_policy_new_like(policy, &fence, &err);
	if (r == 0) {
		r = cordon_policy_file_apply(managed, fence, errors);
		if (r < 0)
			return r; /* with its places */
	}
	if (r == 0)
		r = cordon_net_setting_list(&managed->net, NULL, &fence->net, &err);
	if (r == 0) {
		/* A scope that only warns would be none. */
		scoped = managed->rw.n || managed->ro.n || managed->within.n;
		strict = managed->values.where[CORDON_RECIPE_MODE]
				 ? managed->values.of[CORDON_RECIPE_MODE] == CORDON_MODE_STRICT
				 : scoped;
		cordon_policy_set_mode(fence, strict ? CORDON_MODE_STRICT : CORDON_MODE_PERMISSIVE);
		r = cordon_policy_fence(policy, CORDON_MANAGED_PATH, cordon_steal_ptr(&fence), &err);
	}
	return r < 0 ? cordon_errors_add(errors, &err, CORDON_MANAGED_PATH, 0, 0) : 0;
}

int cordon_managed_share(const struct cordon_policy_file *managed, const char *source, bool read_only,
			 struct cordon_error *err)
{
	const struct cordon_node *node = managed ? cordon_node_get(managed->doc->root, "share") : NULL;
	char clean[CORDON_PATH_MAX];
	struct cordon_root slash = { .fd = -1, .path = "/" };
	CORDON_UNCLEARED struct cordon_resolved found;

	if (!node)
		return 0;
	/* What counts is where the path leads. */
	cordon_resolve(&slash, source, &found);
	if (found.place == CORDON_PLACE_INSIDE && cordon_path_join("/", found.path, clean, sizeof(clean)) == 0)
		for (size_t i = 0; i < managed->n_shares; i++)
			if (cordon_path_within(clean, managed->shares[i].share.source) &&
			    (read_only || !managed->shares[i].share.read_only))
				return 0;
	cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "%s can't be shared%s on this machine", source,
		    read_only ? "" : " for writing");
	cordon_error_hint(err, "%s says what can (%s:%u:%u)", CORDON_MANAGED_PATH, CORDON_MANAGED_PATH, node->line,
			  node->column);
	return -EPERM;
}

int cordon_managed_host(const struct cordon_net_rule *rule, struct cordon_error *err)
{
	CORDON_CLEANUP(cordon_policy_file_freep) struct cordon_policy_file *file = NULL;
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_net_list list = { 0 };
	char text[CORDON_NET_RULE_SIZE];
	bool within;
	int r = cordon_managed_load(&file, &errors);

	if (r < 0)
		return cordon_errors_first(&errors, err);
	if (!file || !file->net.where)
		return 0;
	r = cordon_net_setting_list(&file->net, NULL, &list, err);
	within = r == 0 && !list.listed;
	for (size_t i = 0; r == 0 && i < list.n; i++)
		within |= cordon_net_rule_within(rule, &list.rules[i]);
	cordon_net_list_done(&list);
	if (r < 0 || within)
		return r;
	cordon_net_rule_text(rule, text);
	return cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "%s can't be reached on this machine (%s)", text,
			   file->net.where);
}
