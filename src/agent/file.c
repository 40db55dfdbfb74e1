/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, opens and parses the file of agents. */
#include <fcntl.h>
#include <strings.h>

#include "agent/internal.h"
#include "agent/trust.h"
#include "base/digest.h"
#include "base/io.h"
#include "base/path.h"
#include "config/suggest.h"
#include "policy/folders.h"

struct cordon_agents *cordon_agents_free(struct cordon_agents *agents)
{
	if (agents) {
		cordon_document_free(agents->doc);
		cordon_root_done(&agents->root);
	}
	free(agents);
	return NULL;
}

void cordon_agents_freep(struct cordon_agents **agents)
{
	*agents = cordon_agents_free(*agents);
}

int cordon_agents_format(const char *path, cordon_format *ret_format, struct cordon_error *err)
{
	const char *dot = strrchr(path, '.');

	if (dot && cordon_streq(dot, ".json"))
		*ret_format = CORDON_FORMAT_JSON;
	else if (dot && (cordon_streq(dot, ".yaml") || cordon_streq(dot, ".yml")))
		*ret_format = CORDON_FORMAT_YAML_ALIASES;
	else
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "%s is neither .yaml, .yml nor .json", path);
	return 0;
}

/* `root` is NULL when there is none to compare scopes in; otherwise it becomes that of the agents. */
static int parse(const char *name, cordon_format format, const char *text, size_t len, struct cordon_root *root,
		 struct cordon_agents **ret_agents, struct cordon_errors *errors)
{
	autoagents struct cordon_agents *agents = calloc(1, sizeof(*agents));
	size_t before = errors->n + errors->dropped;
	struct cordon_error err = { 0 };
	int r;

	if (!agents) {
		cordon_fail_errno(&err, -ENOMEM, "cannot read %s", name);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	agents->root.fd = -1;
	cordon_digest(text, len, agents->hash);
	r = cordon_document_parse(name, format, text, len, CORDON_CONFIG_DEPTH_MAX, &agents->doc, errors);
	if (r < 0)
		return r;
	r = cordon_agents_read(agents, errors);
	if (r == 0)
		r = cordon_agents_inherit(agents, errors);
	if (r == 0 && root) {
		agents->root = *root;
		root->fd = -1;
		cordon_agents_check_scopes(agents, errors);
	}
	if (r < 0) {
		cordon_fail_errno(&err, r, "cannot read %s", name);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	if (errors->n + errors->dropped > before)
		return -EINVAL;
	*ret_agents = cordon_steal_ptr(&agents);
	return 0;
}

int cordon_agents_parse(const char *name, cordon_format format, const char *text, size_t len,
			struct cordon_agents **ret_agents, struct cordon_errors *errors)
{
	return parse(name, format, text, len, NULL, ret_agents, errors);
}

int cordon_agents_root(const char *root, struct cordon_root *ret_root, struct cordon_error *err)
{
	int r = root ? cordon_root_open(root, ret_root, err) : cordon_repo_root(".", ret_root, err);

	return r < 0 && root ? cordon_error_prefix(err, r, "root") : r;
}

int cordon_agents_find(const struct cordon_root *root, const char *config, char ret_path[static CORDON_PATH_MAX],
		       struct cordon_error *err)
{
	bool json, yaml;

	if (config)
		return cordon_path_absolute(config, ret_path, err);
	json = faccessat(root->fd, CORDON_AGENTS_JSON, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	yaml = faccessat(root->fd, CORDON_AGENTS_YAML, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (json && yaml) {
		int r = cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "%s has both %s and %s", root->path,
				    CORDON_AGENTS_JSON, CORDON_AGENTS_YAML);

		cordon_error_hint(err, "remove one, or say which one counts");
		return r;
	}
	return cordon_path_join(root->path, yaml ? CORDON_AGENTS_YAML : CORDON_AGENTS_JSON, ret_path, CORDON_PATH_MAX) < 0
		       ? cordon_fail_errno(err, -ENAMETOOLONG, "%s", root->path)
		       : 0;
}

/* Opens the file. What a person did not name is opened without following links: it is in the repository, and links in it
 * may be anybody's. */
static int read_text(const struct cordon_agents *agents, bool named, struct cordon_buf *ret_text,
		     struct cordon_error *err)
{
	const char *below = agents->path + strlen(agents->root.path);
	autofd int fd = -1;
	struct stat st;
	int r;

	if (named) {
		r = cordon_read_file(AT_FDCWD, agents->path, 0, ret_text, err);
	} else {
		fd = cordon_open_beneath(agents->root.fd, below + strspn(below, "/"),
					 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		r = fd < 0 ? cordon_fail_errno(err, fd, "%s", agents->path) : 0;
		if (r == 0 && fstat(fd, &st) < 0)
			r = cordon_fail_errno(err, -errno, "%s", agents->path);
		if (r == 0 && !S_ISREG(st.st_mode))
			r = cordon_fail(err, -EINVAL, CORDON_KIND_IO, "%s is not a regular file", agents->path);
		if (r == 0)
			r = cordon_read_fd(fd, agents->path, ret_text, err);
	}
	if (r == -ENOENT || r == -ENOTDIR) {
		r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND,
				named ? "there is no file %s"
				      : "there is no agents.json and no .agent/agents.yaml in %s",
				named ? agents->path : agents->root.path);
		cordon_error_hint(err, named ? "check the path" : "'cordon agent init' makes one");
	}
	if (r == -ELOOP)
		cordon_error_hint(err, "a link is not followed; give the path of the file that it leads to");
	return r;
}

int cordon_agents_load(const char *root, const char *config, struct cordon_agents **ret_agents,
		       struct cordon_errors *errors)
{
	struct cordon_buf text autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	autoagents struct cordon_agents *agents = NULL;
	struct cordon_agents place = { .root = { .fd = -1 } };
	struct cordon_error err = { 0 };
	cordon_format format = CORDON_FORMAT_JSON;
	int r = cordon_agents_root(root, &place.root, &err);

	if (r == 0)
		r = cordon_agents_find(&place.root, config, place.path, &err);
	if (r == 0)
		r = cordon_agents_format(place.path, &format, &err);
	if (r == 0)
		r = read_text(&place, config, &text, &err);
	if (r < 0)
		cordon_errors_add(errors, &err, NULL, 0, 0);
	else
		r = parse(config ? config : place.path, format, text.data ? text.data : "", text.len, &place.root,
			  &agents, errors);
	cordon_root_done(&place.root);
	if (r < 0 || !agents)
		return r;
	memcpy(agents->path, place.path, sizeof(place.path));
	agents->trusted = cordon_agents_trusted(agents);
	*ret_agents = cordon_steal_ptr(&agents);
	return 0;
}

int cordon_agents_get(const struct cordon_agents *agents, const char *name, const struct cordon_agent **ret_agent,
		      struct cordon_error *err)
{
	size_t best = CORDON_SUGGEST_FAR;
	const char *nearest = NULL;

	for (size_t i = 0; i < agents->n; i++) {
		if (!agents->items[i].name)
			continue;
		if (strcasecmp(agents->items[i].name, name) == 0) {
			*ret_agent = &agents->items[i];
			return 0;
		}
		if (cordon_suggest_closer(name, agents->items[i].name, &best))
			nearest = agents->items[i].name;
	}
	cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no agent '%.80s'", name);
	if (nearest)
		cordon_error_hint(err, "did you mean '%s'?", nearest);
	else
		cordon_error_hint(err, "'cordon agent list' shows those of %s", agents->doc->name);
	return -ENOENT;
}
