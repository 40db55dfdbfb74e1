/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what a person means by a name or by the first characters of an id. */
#include <stdio.h>

#include "base/buf.h"
#include "config/suggest.h"
#include "store/internal.h"

#define SHOWN 5 /* candidates that a message names */
#define LABEL_SIZE 64

struct candidate {
	char id[CORDON_ID_SIZE];
	char label[LABEL_SIZE]; /* what tells it from the others, or "" */
};

struct candidates {
	struct candidate *items;
	size_t n, space;
};

static void candidates_done(struct candidates *candidates)
{
	free(candidates->items);
}

#define autocandidates CORDON_CLEANUP(candidates_done)

static int add(struct candidates *candidates, const char *id, const char *label, struct cordon_error *err)
{
	if (candidates->n == candidates->space) {
		size_t space = candidates->space ? 2 * candidates->space : 8;
		struct candidate *items = reallocarray(candidates->items, space, sizeof(*items));

		if (!items)
			return cordon_no_memory(err);
		candidates->items = items;
		candidates->space = space;
	}
	snprintf(candidates->items[candidates->n].id, CORDON_ID_SIZE, "%s", id);
	snprintf(candidates->items[candidates->n].label, LABEL_SIZE, "%s", label ? label : "");
	candidates->n++;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct candidate *)a)->id, ((const struct candidate *)b)->id);
}

static int ambiguous(const char *kind, const char *text, struct candidates *candidates, struct cordon_error *err)
{
	autobuf struct cordon_buf list = CORDON_BUF(4096);
	int r;

	qsort(candidates->items, candidates->n, sizeof(*candidates->items), compare);
	for (size_t i = 0; i < candidates->n && i < SHOWN; i++) {
		const struct candidate *item = &candidates->items[i];

		cordon_buf_addf(&list, "%s%s%s%s%s", i ? ", " : "", item->id, *item->label ? " (" : "", item->label,
				*item->label ? ")" : "");
	}
	if (candidates->n > SHOWN)
		cordon_buf_addf(&list, " and %zu more", candidates->n - SHOWN);
	r = cordon_fail(err, -ENOTUNIQ, CORDON_KIND_USAGE, "%.80s may be %zu %ss: %s", text, candidates->n, kind,
			list.data ? list.data : "");
	cordon_error_hint(err, "say more of the id");
	return r;
}

/* Returns 0 and the id of the only candidate, or an error that names them all. There is one at least. */
static int settle(const char *kind, const char *text, struct candidates *candidates, char ret_id[static CORDON_ID_SIZE],
		  struct cordon_error *err)
{
	if (candidates->n > 1)
		return ambiguous(kind, text, candidates, err);
	snprintf(ret_id, CORDON_ID_SIZE, "%s", candidates->items ? candidates->items->id : "");
	return 0;
}

/* Copies the text in lower case if it may be the beginning of a UUID. */
static bool take_beginning(const char *text, unsigned int flags, char ret_beginning[static CORDON_UUID_SIZE])
{
	size_t n = strlen(text);

	if (n < (flags & CORDON_FIND_TO_DELETE ? CORDON_FIND_DELETE_MIN : CORDON_FIND_MIN) || n >= CORDON_UUID_SIZE ||
	    strspn(text, "0123456789abcdefABCDEF-") != n)
		return false;
	for (size_t i = 0; i <= n; i++)
		ret_beginning[i] = (char)(text[i] >= 'A' && text[i] <= 'F' ? text[i] | 0x20 : text[i]);
	return true;
}

/* Only UUIDs can be abbreviated: an id that somebody chose ("job-1") may be the beginning of another ("job-10"). */
static bool begins(const char *id, const char *beginning)
{
	return *beginning && cordon_uuid_valid(id) && strncmp(id, beginning, strlen(beginning)) == 0;
}

static int no_project(const char *text, const char *closest, struct cordon_error *err)
{
	int r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "no project has this name or id: %.80s", text);

	if (*closest)
		cordon_error_hint(err, "did you mean %s?", closest);
	else
		cordon_error_hint(err,
				  "see 'cordon project list'; of an id, %d characters are enough if no other has them",
				  CORDON_FIND_MIN);
	return r;
}

int cordon_project_find(const struct cordon_store *store, const char *text, unsigned int flags,
			char ret_id[static CORDON_ID_SIZE], struct cordon_error *err)
{
	autocandidates struct candidates named = { 0 }, begun = { 0 };
	char beginning[CORDON_UUID_SIZE] = "", closest[CORDON_NAME_MAX + 1] = "";
	size_t i, best = CORDON_SUGGEST_FAR;
	json_auto_t *names = NULL;
	json_t *name;
	int r;

	if (cordon_id_uuid("project_id", text, ret_id, NULL) == 0)
		return 0;
	r = cordon_record_names(store->projects_fd, NULL, &names, err);
	take_beginning(text, flags, beginning);
	json_array_foreach(names, i, name) {
		autoprojectrecord struct cordon_project_record project = { 0 };
		const char *id = json_string_value(name);
		char file[NAME_MAX + 32];

		snprintf(file, sizeof(file), "%s/project.json", id);
		/* A record that can't be read, or is removed meanwhile, has no name; it is found by its id. */
		cordon_record_load(&cordon_project_kind, store->projects_fd, file, &project, NULL);
		if (r == 0 && project.name && cordon_streq(project.name, text))
			r = add(&named, id, project.name, err);
		if (r == 0 && begins(id, beginning))
			r = add(&begun, id, project.name, err);
		if (project.name && cordon_suggest_closer(text, project.name, &best))
			snprintf(closest, sizeof(closest), "%s", project.name);
	}
	if (r < 0)
		return r;
	if (!named.n && !begun.n)
		return no_project(text, closest, err);
	return settle("project", text, named.n ? &named : &begun, ret_id, err);
}

int cordon_workspace_find(const struct cordon_store *store, const char *project_id, const char *text,
			  unsigned int flags, char ret_id[static CORDON_ID_SIZE], struct cordon_error *err)
{
	autocandidates struct candidates named = { 0 }, begun = { 0 };
	autoproject struct cordon_project project = CORDON_PROJECT_NONE;
	char beginning[CORDON_UUID_SIZE] = "";
	json_auto_t *names = NULL;
	autofd int dir = -1;
	json_t *name;
	size_t i;
	int r = cordon_project_hold(store, project_id, 0, &project, err);

	if (r == 0)
		r = cordon_state_dir(project.state_fd, "workspaces", &dir, err);
	if (r == 0)
		r = cordon_record_names(dir, ".json", &names, err);
	take_beginning(text, flags, beginning);
	json_array_foreach(names, i, name) {
		autoworkspacerecord struct cordon_workspace_record workspace = { 0 };
		const char *id = json_string_value(name);

		if (strcasecmp(id, text) == 0)
			return cordon_id_workspace("workspace_id", text, ret_id, err);
		cordon_workspace_read(&project, id, &workspace, NULL);
		if (r == 0 && workspace.external_id && cordon_streq(workspace.external_id, text))
			r = add(&named, id, workspace.source, err);
		if (r == 0 && begins(id, beginning))
			r = add(&begun, id, workspace.external_id, err);
	}
	if (r < 0)
		return r;
	/* The caller says that there is no such workspace, or makes it. */
	if (!named.n && !begun.n)
		return cordon_id_workspace("workspace_id", text, ret_id, err);
	return settle("workspace", text, named.n ? &named : &begun, ret_id, err);
}

int cordon_session_find(const struct cordon_store *store, const char *text, char ret_id[static CORDON_ID_SIZE],
			struct cordon_error *err)
{
	autocandidates struct candidates begun = { 0 };
	char beginning[CORDON_UUID_SIZE] = "";
	json_auto_t *names = NULL;
	json_t *name;
	size_t i;
	int r;

	if (!take_beginning(text, 0, beginning) || cordon_uuid_valid(beginning))
		return cordon_id_uuid("session_id", text, ret_id, err);
	r = cordon_record_names(store->sessions_fd, NULL, &names, err);
	json_array_foreach(names, i, name) {
		if (r == 0 && begins(json_string_value(name), beginning))
			r = add(&begun, json_string_value(name), NULL, err);
	}
	if (r == 0 && begun.n == 0) {
		r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "no session has an id that begins with %s", text);
		cordon_error_hint(err, "see 'cordon session list'");
	}
	for (i = 0; r == 0 && begun.n > 1 && i < begun.n; i++) {
		autosessionrecord struct cordon_session_record session = { 0 };

		if (cordon_session_get(store, begun.items[i].id, &session, NULL) == 0)
			snprintf(begun.items[i].label, LABEL_SIZE, "%s", cordon_session_status_name(session.status));
	}
	return r < 0 ? r : settle("session", text, &begun, ret_id, err);
}
