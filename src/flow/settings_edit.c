/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of config.yaml. The lock is on the directory of the file: the file itself may be missing, and is replaced
 * by each change.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "audit/audit.h"
#include "base/confirmed.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/resolve.h"
#include "config/edit_file.h"
#include "config/edit_yaml.h"
#include "flow/edit.h"
#include "flow/flow.h"
#include "flow/orchestrator_file.h"
#include "flow/private.h"

/* A change under way. */
struct changing {
	const struct cordon_settings_edit *edit;
	struct cordon_settings_edited *edited;
	struct cordon_yaml yaml;
	struct cordon_errors *errors;
	char path[CORDON_PATH_MAX];
	/* What was made on disk, to be taken back if the change fails. */
	bool made_directory, made_file;
};

static int fail(const struct changing *c, const struct cordon_error *err)
{
	return cordon_errors_add(c->errors, err, NULL, 0, 0);
}

static int conflict(const struct changing *c, const char *hint, const char *fmt, ...) CORDON_PRINTF(3, 4);
static int conflict(const struct changing *c, const char *hint, const char *fmt, ...)
{
	struct cordon_buf text autobuf = CORDON_BUF(1024);
	struct cordon_error err = { 0 };
	va_list args;

	va_start(args, fmt);
	(void)cordon_buf_addv(&text, fmt, args);
	va_end(args);
	cordon_fail(&err, -EEXIST, CORDON_KIND_CONFLICT, "%s", text.data ? text.data : fmt);
	cordon_error_hint(&err, "%s", hint);
	return fail(c, &err);
}

/* ---- the kinds of changes; each edits the text, or leaves it alone when there is nothing to do ---- */

static const struct cordon_orchestrator *orchestrator_of(const struct changing *c, const char *id,
							 struct cordon_error *err)
{
	const struct cordon_orchestrator *found = NULL;

	(void)cordon_settings_orchestrator(c->edited->before, id, &found, err);
	return found;
}

static int add_orchestrator(struct changing *c)
{
	const char *keys[] = { "orchestrators", c->edit->id };

	if (orchestrator_of(c, c->edit->id, NULL))
		return 0;
	return cordon_yaml_put(&c->yaml, keys, 2, json_pack("{s:[]}", "shared_access"), c->errors);
}

static int remove_orchestrator(struct changing *c)
{
	const struct cordon_settings_file *before = c->edited->before;
	const struct cordon_orchestrator *orchestrator = orchestrator_of(c, c->edit->id, NULL);
	const char *keys[] = { "orchestrators", c->edit->id };

	if (!orchestrator)
		return 0;
	for (size_t i = 0; i < before->n_profiles; i++)
		if (before->profiles[i].orchestrator == orchestrator)
			return conflict(c, "remove the profile, or give it another orchestrator, first",
					"the channel profile %s uses the orchestrator %s", before->profiles[i].id,
					orchestrator->id);
	return cordon_yaml_drop(&c->yaml, cordon_yaml_get(&c->yaml, keys, 1), cordon_yaml_get(&c->yaml, keys, 2),
				c->errors);
}

/* Resolves a path that the caller names, so that the file has what it leads to. */
static int resolve(const struct changing *c, char ret[static CORDON_PATH_MAX])
{
	struct cordon_error err = { 0 };

	if (c->edit->path[0] != '/')
		cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "the path must be absolute, not %.200s", c->edit->path);
	else if (cordon_settings_resolve(c->edit->path, ret) < 0)
		cordon_fail(&err, -ELOOP, CORDON_KIND_CONFIG, "%.400s can't be resolved", c->edit->path);
	return err.code ? fail(c, &err) : 0;
}

static json_t *text_json(const char *text)
{
	return json_string(text);
}

static int set_private(struct changing *c)
{
	struct cordon_error err = { 0 };
	const struct cordon_orchestrator *orchestrator = orchestrator_of(c, c->edit->id, &err);
	const char *keys[] = { "orchestrators", c->edit->id, "private_workspace" };
	char path[CORDON_PATH_MAX];
	int r;

	if (!orchestrator)
		return fail(c, &err);
	if (!c->edit->path) {
		const struct cordon_node *node = cordon_yaml_get(&c->yaml, keys, 3);

		return node ? cordon_yaml_drop(&c->yaml, cordon_yaml_get(&c->yaml, keys, 2), node, c->errors) : 0;
	}
	r = resolve(c, path);
	if (r < 0 || (orchestrator->given && cordon_streq(orchestrator->given, path)))
		return r;
	return cordon_yaml_put(&c->yaml, keys, 3, text_json(path), c->errors);
}

static json_t *grant_json(const struct changing *c)
{
	json_t *grant;

	if (!c->edit->read_only && !c->edit->cross_domain)
		return text_json(c->edit->key);
	grant = json_pack("{s:s}", "name", c->edit->key);
	if (c->edit->read_only)
		json_object_set_new(grant, "access", json_string("read-only"));
	if (c->edit->cross_domain)
		json_object_set_new(grant, "cross_domain", json_true());
	return grant;
}

/* The node of a grant in the text that is being changed. */
static const struct cordon_node *grant_node(const struct changing *c, const struct cordon_node *list)
{
	for (const struct cordon_node *node = list ? list->first : NULL; node; node = node->next) {
		const struct cordon_node *name = node->type == CORDON_NODE_MAPPING ? cordon_node_get(node, "name")
										   : node;

		if (name && name->type == CORDON_NODE_SCALAR && cordon_streq(name->text, c->edit->key))
			return node;
	}
	return NULL;
}

/* Changes a grant that there is: member by member, so that comments stay. */
static int change_grant(struct changing *c, const char *const *keys, const struct cordon_area_grant *old)
{
	const struct cordon_node *node = grant_node(c, cordon_yaml_get(&c->yaml, keys, 3));
	int r = 0;

	if (node->type != CORDON_NODE_MAPPING)
		return cordon_yaml_replace(&c->yaml, node, grant_json(c), c->errors);
	if (old->read_only != c->edit->read_only)
		r = cordon_yaml_put_in(&c->yaml, node, "access",
				       json_string(c->edit->read_only ? "read-only" : "read-write"), c->errors);
	if (r == 0 && old->cross_domain != c->edit->cross_domain)
		r = cordon_yaml_put_in(&c->yaml, grant_node(c, cordon_yaml_get(&c->yaml, keys, 3)), "cross_domain",
				       json_boolean(c->edit->cross_domain), c->errors);
	return r;
}

static int grant_area(struct changing *c)
{
	struct cordon_error err = { 0 };
	const struct cordon_orchestrator *orchestrator = orchestrator_of(c, c->edit->id, &err);
	const char *keys[] = { "orchestrators", c->edit->id, "shared_access" };
	const struct cordon_shared_area *area = NULL;
	const struct cordon_area_grant *old;
	const struct cordon_node *list;

	if (!orchestrator || cordon_settings_area(c->edited->before, c->edit->key, &area, &err) < 0)
		return fail(c, &err);
	old = cordon_orchestrator_grant(orchestrator, area->key);
	if (old && old->read_only == c->edit->read_only && old->cross_domain == c->edit->cross_domain)
		return 0;
	if (old)
		return change_grant(c, keys, old);
	list = cordon_yaml_get(&c->yaml, keys, 3);
	if (!list)
		return cordon_yaml_put(&c->yaml, keys, 3, json_pack("[o]", grant_json(c)), c->errors);
	return cordon_yaml_append(&c->yaml, list, grant_json(c), c->errors);
}

static int revoke_area(struct changing *c)
{
	struct cordon_error err = { 0 };
	const struct cordon_orchestrator *orchestrator = orchestrator_of(c, c->edit->id, &err);
	const char *keys[] = { "orchestrators", c->edit->id, "shared_access" };
	const struct cordon_shared_area *area = NULL;
	const struct cordon_node *list;

	if (!orchestrator || cordon_settings_area(c->edited->before, c->edit->key, &area, &err) < 0)
		return fail(c, &err);
	if (!cordon_orchestrator_grant(orchestrator, area->key))
		return 0;
	list = cordon_yaml_get(&c->yaml, keys, 3);
	return cordon_yaml_drop(&c->yaml, list, grant_node(c, list), c->errors);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? cordon_streq(a, b) : a == b;
}

static int add_area(struct changing *c)
{
	const char *keys[] = { "shared_workspaces", c->edit->key };
	const struct cordon_shared_area *area = NULL;
	char path[CORDON_PATH_MAX];
	json_t *value;
	int r = resolve(c, path);

	if (r < 0)
		return r;
	if (cordon_settings_area(c->edited->before, c->edit->key, &area, NULL) == 0) {
		if (cordon_streq(area->path, path) && cordon_streq(area->description, c->edit->text) &&
		    same_text(area->domain, c->edit->domain))
			return 0;
		return conflict(c, "'cordon shared remove' takes it away, or choose another key",
				"there is a shared area %s already: %s", area->key, area->path);
	}
	value = json_pack("{s:o, s:o}", "path", text_json(path), "description", text_json(c->edit->text));
	if (value && c->edit->domain)
		json_object_set_new(value, "domain", text_json(c->edit->domain));
	if (!value || (c->edit->domain && !json_object_get(value, "domain"))) {
		json_decref(value);
		return conflict(c, "write it in UTF-8", "the path or the description is not valid text");
	}
	return cordon_yaml_put(&c->yaml, keys, 2, value, c->errors);
}

static int remove_area(struct changing *c)
{
	const struct cordon_settings_file *before = c->edited->before;
	const char *keys[] = { "shared_workspaces", c->edit->key };

	if (!cordon_yaml_get(&c->yaml, keys, 2))
		return 0;
	for (size_t i = 0; i < before->n_orchestrators; i++)
		if (cordon_orchestrator_grant(&before->orchestrators[i], c->edit->key))
			return conflict(c, "revoke it first", "the shared area %s is granted to %s", c->edit->key,
					before->orchestrators[i].id);
	return cordon_yaml_drop(&c->yaml, cordon_yaml_get(&c->yaml, keys, 1), cordon_yaml_get(&c->yaml, keys, 2),
				c->errors);
}

static int add_profile(struct changing *c)
{
	const char *keys[] = { "channel_profiles", c->edit->id };
	const struct cordon_channel_profile *profile = NULL;
	json_t *value;

	if (cordon_settings_profile(c->edited->before, c->edit->id, &profile, NULL) == 0) {
		if (cordon_streq(profile->channel, c->edit->channel) &&
		    cordon_streq(profile->orchestrator->id, c->edit->key) &&
		    same_text(profile->domain, c->edit->domain) && same_text(profile->default_workflow, c->edit->text))
			return 0;
		return conflict(c, "remove it first, or choose another id", "there is a channel profile %s already",
				c->edit->id);
	}
	value = json_pack("{s:o, s:s}", "channel", text_json(c->edit->channel), "orchestrator_id", c->edit->key);
	if (c->edit->domain)
		json_object_set_new(value, "domain", text_json(c->edit->domain));
	if (c->edit->text)
		json_object_set_new(value, "default_workflow", text_json(c->edit->text));
	return cordon_yaml_put(&c->yaml, keys, 2, value, c->errors);
}

static int remove_profile(struct changing *c)
{
	const char *keys[] = { "channel_profiles", c->edit->id };
	const struct cordon_node *node = cordon_yaml_get(&c->yaml, keys, 2);

	return node ? cordon_yaml_drop(&c->yaml, cordon_yaml_get(&c->yaml, keys, 1), node, c->errors) : 0;
}

static int set_profile(struct changing *c)
{
	const char *keys[] = { "channel_profiles", c->edit->id, "orchestrator_id" };
	const struct cordon_channel_profile *profile = NULL;
	struct cordon_error err = { 0 };

	if (cordon_settings_profile(c->edited->before, c->edit->id, &profile, &err) < 0 ||
	    !orchestrator_of(c, c->edit->key, &err))
		return fail(c, &err);
	if (cordon_streq(profile->orchestrator->id, c->edit->key))
		return 0;
	return cordon_yaml_put(&c->yaml, keys, 3, text_json(c->edit->key), c->errors);
}

/* The text of another file. The oldest form of the original calls workspaces_path otherwise. */
static int import(struct changing *c)
{
	struct cordon_buf text autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	static const char *const older[] = { "workspace_path" };
	struct cordon_yaml yaml autoyaml = { 0 };
	const struct cordon_node *node;
	struct cordon_error err = { 0 };
	autofree char *path = NULL;
	int r;

	if (c->yaml.doc && c->yaml.doc->root->n)
		return conflict(c, "move that file away first", "%s has settings already", c->path);
	if (cordon_read_file(AT_FDCWD, c->edit->path, 0, &text, &err) < 0)
		return fail(c, &err);
	r = cordon_yaml_begin(&yaml, c->edit->path, text.data ? text.data : "", text.len, c->errors);
	node = r == 0 ? cordon_yaml_get(&yaml, older, 1) : NULL;
	if (node && node->type == CORDON_NODE_SCALAR) {
		path = strdup(node->text);
		r = path ? cordon_yaml_drop(&yaml, yaml.doc->root, node, c->errors) : -ENOMEM;
		if (r == 0)
			r = cordon_yaml_put(&yaml, (const char *[]){ "workspaces_path" }, 1, text_json(path), c->errors);
	}
	if (r < 0)
		return r;
	cordon_yaml_done(&c->yaml);
	c->yaml.text = yaml.text;
	c->yaml.doc = cordon_steal_ptr(&yaml.doc);
	yaml.text = (struct cordon_buf){ 0 };
	return 0;
}

/* ---- the private workspace ---- */

/* Makes the private workspace with its first file, if they are missing. */
static int make_private(struct changing *c, struct cordon_error *err)
{
	struct cordon_buf text autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	const struct cordon_orchestrator *orchestrator = NULL;
	autofd int fd = -1;
	struct stat st;
	int r = cordon_settings_orchestrator(c->edited->after, c->edit->id, &orchestrator, err);

	if (r < 0)
		return r;
	c->made_directory |= lstat(orchestrator->private_workspace, &st) < 0;
	r = cordon_private_open(orchestrator, true, &fd, err);
	if (r < 0)
		return r;
	/* A directory that was kept after a removal is ours as well. */
	if (!orchestrator->given && fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077))
		(void)fchmod(fd, 0700);
	if (fstatat(fd, CORDON_ORCHESTRATOR_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISREG(st.st_mode))
			return 0;
		cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "%s/%s is no regular file",
			    orchestrator->private_workspace, CORDON_ORCHESTRATOR_FILE);
		cordon_error_hint(err, "move it away");
		return -EEXIST;
	}
	r = cordon_orchestrator_file_first(orchestrator->id, &text);
	if (r < 0)
		return cordon_fail_errno(err, r, "%s", orchestrator->id);
	r = cordon_write_file(fd, CORDON_ORCHESTRATOR_FILE, 0600, text.data, text.len, err);
	c->made_file |= r == 0;
	return r;
}

/* Takes back what make_private() made. */
static void unmake_private(const struct changing *c)
{
	const struct cordon_orchestrator *orchestrator = NULL;
	autofd int fd = -1;

	if ((!c->made_file && !c->made_directory) || !c->edited->after ||
	    cordon_settings_orchestrator(c->edited->after, c->edit->id, &orchestrator, NULL) < 0)
		return;
	if (c->made_file && cordon_private_open(orchestrator, false, &fd, NULL) == 0)
		(void)unlinkat(fd, CORDON_ORCHESTRATOR_FILE, 0);
	if (c->made_directory)
		(void)rmdir(orchestrator->private_workspace);
}

/* A person says yes to the directory of an area: what stands there now is what orchestrators get. */
static int confirm_area(const struct changing *c, struct cordon_error *err)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	const struct cordon_shared_area *area = NULL;
	char path[CORDON_PATH_MAX];
	struct cordon_named named = { .path = path };
	autofd int fd = -1;
	int r = cordon_settings_area(c->edited->after, c->edit->key, &area, err);

	if (r == 0)
		r = cordon_home_open(&home, err);
	if (r < 0)
		return r;
	named.given = area->given;
	named.fd = fd = cordon_resolve_open(area->path, path);
	return fd < 0 ? cordon_fail_errno(err, fd, "%s", area->path)
		      : cordon_confirmed_take(&home, &named, false, NULL, err);
}

/* ---- one change ---- */

static const struct {
	int (*edit)(struct changing *c);
	bool takes_away;
	bool makes_private;
} kinds[] = {
	[CORDON_EDIT_ADD_ORCHESTRATOR] = { .edit = add_orchestrator, .makes_private = true },
	[CORDON_EDIT_REMOVE_ORCHESTRATOR] = { .edit = remove_orchestrator, .takes_away = true },
	[CORDON_EDIT_SET_PRIVATE] = { .edit = set_private, .makes_private = true },
	[CORDON_EDIT_GRANT] = { .edit = grant_area },
	[CORDON_EDIT_REVOKE] = { .edit = revoke_area, .takes_away = true },
	[CORDON_EDIT_ADD_AREA] = { .edit = add_area },
	[CORDON_EDIT_REMOVE_AREA] = { .edit = remove_area, .takes_away = true },
	[CORDON_EDIT_ADD_PROFILE] = { .edit = add_profile },
	[CORDON_EDIT_REMOVE_PROFILE] = { .edit = remove_profile, .takes_away = true },
	[CORDON_EDIT_SET_PROFILE] = { .edit = set_profile },
	[CORDON_EDIT_IMPORT] = { .edit = import },
};

static int check_names(const struct changing *c)
{
	const struct cordon_settings_edit *edit = c->edit;
	bool area = edit->kind == CORDON_EDIT_ADD_AREA || edit->kind == CORDON_EDIT_REMOVE_AREA ||
		    edit->kind == CORDON_EDIT_GRANT || edit->kind == CORDON_EDIT_REVOKE;
	bool profile = edit->kind == CORDON_EDIT_ADD_PROFILE || edit->kind == CORDON_EDIT_REMOVE_PROFILE ||
		       edit->kind == CORDON_EDIT_SET_PROFILE;
	struct cordon_error err = { 0 };

	if (edit->id)
		(void)cordon_settings_id_check(profile ? "the id of a channel profile" : "the id of an orchestrator",
					       edit->id, &err);
	if (!err.code && edit->key)
		(void)cordon_settings_id_check(area ? "the key of a shared area" : "the id of an orchestrator",
					       edit->key, &err);
	return err.code ? fail(c, &err) : 0;
}

/* Whoever was asked must have been asked about the settings as they are now. */
static int check_shown(const struct changing *c)
{
	struct cordon_error err = { 0 };

	if (!c->edit->shown || cordon_streq(c->edited->before->digest, c->edit->shown))
		return 0;
	cordon_fail(&err, -ESTALE, CORDON_KIND_CONFLICT,
		    "the settings have changed since the question was put: ask again");
	return fail(c, &err);
}

/* Called with the text of the file; may be called again when somebody else has written it meanwhile. */
static int edit_text(void *data, const char *name, const char *text, size_t len, struct cordon_buf *ret_text,
		     bool *ret_changed, struct cordon_errors *errors)
{
	struct changing *c = data;
	struct cordon_error err = { 0 };
	int r;

	cordon_yaml_done(&c->yaml);
	c->edited->before = cordon_settings_free(c->edited->before);
	c->edited->after = cordon_settings_free(c->edited->after);
	r = cordon_settings_parse(name, text, len, &c->edited->before, errors);
	if (r == 0)
		r = check_shown(c);
	if (r == 0)
		r = cordon_yaml_begin(&c->yaml, name, text, len, errors);
	if (r == 0)
		r = kinds[c->edit->kind].edit(c);
	if (r == 0)
		r = cordon_settings_parse(name, c->yaml.text.data ? c->yaml.text.data : "", c->yaml.text.len,
					  &c->edited->after, errors);
	if (r == 0 && !kinds[c->edit->kind].takes_away)
		r = cordon_settings_check(c->edited->after, errors);
	if (r == 0 && kinds[c->edit->kind].makes_private && make_private(c, &err) < 0)
		r = fail(c, &err);
	if (r == 0 && c->edit->kind == CORDON_EDIT_ADD_AREA && confirm_area(c, &err) < 0)
		r = fail(c, &err);
	if (r < 0)
		return r;
	*ret_changed = c->yaml.text.len != len || (len && memcmp(c->yaml.text.data, text, len) != 0);
	c->edited->changed = *ret_changed;
	if (*ret_changed && cordon_buf_add(ret_text, c->yaml.text.data, c->yaml.text.len) < 0) {
		cordon_fail_errno(&err, -E2BIG, "%s", name);
		return fail(c, &err);
	}
	return 0;
}

/* The first settings. */
static int make_file(struct changing *c, int dir_fd)
{
	struct cordon_buf text autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct cordon_error err = { 0 };
	bool changed = false;
	int r = edit_text(c, c->path, "", 0, &text, &changed, c->errors);

	if (r < 0 || !changed)
		return r;
	r = cordon_write_file(dir_fd, cordon_path_base(c->path), 0600, text.data, text.len, &err);
	return r < 0 ? fail(c, &err) : 0;
}

/* Locks the directory of the file. */
static int lock(const struct changing *c, int *ret_fd, struct cordon_error *err)
{
	char dir[CORDON_PATH_MAX];
	const char *slash = strrchr(c->path, '/');
	autofd int fd = -1;
	int r;

	if (cordon_copy(dir, sizeof(dir), c->path, slash == c->path ? 1 : (size_t)(slash - c->path)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", c->path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cordon_fail_errno(err, -errno, "cannot open %s", dir);
	r = cordon_lock_within(fd, LOCK_EX, CORDON_SETTINGS_LOCK_MS);
	if (r == -EWOULDBLOCK) {
		cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "%s is being changed by another process", c->path);
		cordon_error_hint(err, "try again when it has ended");
		return -EBUSY;
	}
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock %s", dir);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

/* ---- the audit log ---- */

/* Records that a grant was given or taken away, or that somebody tried to. A change stands also without a log. */
static void record(const struct changing *c, int r)
{
	const struct cordon_settings_edit *edit = c->edit;
	const struct cordon_settings_file *settings = c->edited->after ? c->edited->after : c->edited->before;
	struct cordon_audit_event event = { .op = edit->kind == CORDON_EDIT_GRANT ? "grant" : "revoke",
					    .rule = edit->key };
	struct cordon_audit_ids ids = { .orchestrator_id = edit->id };
	autohome struct cordon_home home = CORDON_HOME_NONE;
	const struct cordon_shared_area *area = NULL;
	struct cordon_audit *audit = NULL;
	json_auto_t *detail = NULL;

	if ((edit->kind != CORDON_EDIT_GRANT && edit->kind != CORDON_EDIT_REVOKE) || (r == 0 && !c->edited->changed) ||
	    cordon_home_open(&home, NULL) < 0)
		return;
	if (settings && cordon_settings_area(settings, edit->key, &area, NULL) == 0)
		event.path = area->path;
	event.type = r < 0 ? CORDON_AUDIT_REFUSAL : CORDON_AUDIT_GRANT;
	event.success = r < 0 ? CORDON_AUDIT_FAILED : CORDON_AUDIT_SUCCEEDED;
	if (r < 0 && c->errors->n) {
		event.kind = c->errors->items[0].kind;
		detail = json_pack("{s:o}", "message", cordon_audit_text(c->errors->items[0].message));
	} else if (edit->kind == CORDON_EDIT_GRANT) {
		detail = json_pack("{s:s, s:b}", "access", edit->read_only ? "read-only" : "read-write", "cross_domain",
				   (int)edit->cross_domain);
	}
	event.detail = detail;
	if (cordon_audit_open(&home, &ids, &audit, NULL) == 0)
		(void)cordon_audit_write(audit, &event, NULL);
	cordon_audit_close(audit);
}

/* Says to commands that hold the area, before they can see the change, whether they go on. When that can't be said they end. */
static void keep_commands(const struct cordon_settings_edit *edit, bool keep)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;

	if ((edit->kind == CORDON_EDIT_GRANT || edit->kind == CORDON_EDIT_REVOKE) && cordon_home_open(&home, NULL) == 0)
		(void)cordon_flow_keep_commands(&home, edit->id, edit->key, keep, NULL);
}

void cordon_settings_edited_done(struct cordon_settings_edited *edited)
{
	edited->before = cordon_settings_free(edited->before);
	edited->after = cordon_settings_free(edited->after);
}

int cordon_settings_edit(const struct cordon_settings_edit *edit, struct cordon_settings_edited *ret_edited,
			 struct cordon_errors *errors)
{
	struct changing c = { .edit = edit, .edited = ret_edited, .errors = errors };
	struct cordon_error err = { 0 };
	autofd int dir_fd = -1;
	int r = check_names(&c);

	*ret_edited = (struct cordon_settings_edited){ 0 };
	if (r < 0)
		return r;
	r = cordon_settings_path(edit->config, c.path, &err);
	if (r == 0)
		r = lock(&c, &dir_fd, &err);
	if (r < 0)
		return fail(&c, &err);
	keep_commands(edit, edit->keep_running);
	if (faccessat(dir_fd, cordon_path_base(c.path), F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		r = make_file(&c, dir_fd);
	else
		r = cordon_edit_file(c.path, CORDON_CONFIG_SIZE_MAX, edit_text, &c, errors);
	if (r < 0)
		unmake_private(&c);
	if (r < 0 && edit->keep_running)
		keep_commands(edit, false);
	record(&c, r);
	cordon_yaml_done(&c.yaml);
	return r;
}
