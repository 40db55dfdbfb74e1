/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sessions run. A name in active/ says that a session was started. The session lives as long as its process holds
 * the lock state/sessions/<id>/alive, which the kernel releases when the process ends, however it ends.
 */
#include <stdio.h>

#include "base/lock.h"
#include "state/kinds.h"
#include "store/internal.h"

static int open_active(const struct cordon_project *project, int *ret_fd, struct cordon_error *err)
{
	return cordon_state_dir(project->state_fd, "active", ret_fd, err);
}

/* Splits "<workspace>.<session>"; neither of them has a dot in it. */
static bool split(const char *name, char workspace[static CORDON_ID_SIZE], char session[static CORDON_ID_SIZE])
{
	const char *dot = strchr(name, '.');

	return dot && cordon_copy(workspace, CORDON_ID_SIZE, name, (size_t)(dot - name)) == 0 &&
	       cordon_id_workspace("", workspace, workspace, NULL) == 0 &&
	       cordon_id_uuid("", dot + 1, session, NULL) == 0;
}

/* Whether the record says that the session has ended. The process of a session lives a moment longer than its
 * program. */
static bool has_ended(const struct cordon_store *store, const char *session)
{
	autosessionrecord struct cordon_session_record record = { 0 };

	return cordon_session_read(store, session, &record, NULL) == 0 && record.status != CORDON_SESSION_ACTIVE;
}

bool cordon_session_runs(const struct cordon_store *store, const char *session)
{
	return cordon_session_lives(store, session) && !has_ended(store, session);
}

bool cordon_session_lives(const struct cordon_store *store, const char *session)
{
	autofd int fd = openat(store->sessions_fd, session, CORDON_OPEN_DIR);

	return fd >= 0 && cordon_state_kind_lives(CORDON_STATE_KIND_SESSIONS, fd);
}

int cordon_active_list(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		       json_t **ret_ids, struct cordon_error *err)
{
	json_auto_t *names = NULL;
	json_auto_t *ids = json_array();
	autofd int fd = -1;
	size_t i;
	json_t *name;
	int r = open_active(project, &fd, err);

	if (r == 0)
		r = cordon_record_names(fd, NULL, &names, err);
	if (r < 0)
		return r;
	json_array_foreach(names, i, name) {
		char in[CORDON_ID_SIZE], session[CORDON_ID_SIZE];

		if (!split(json_string_value(name), in, session) || (workspace && !cordon_streq(in, workspace)))
			continue;
		/* A session is registered only while its lock is held, so this never removes the name of one that
		 * starts. */
		if (!cordon_session_lives(store, session))
			unlinkat(fd, json_string_value(name), 0);
		else if (!has_ended(store, session) && json_array_append_new(ids, json_string(session)) < 0)
			return cordon_no_memory(err);
	}
	if (!ids)
		return cordon_no_memory(err);
	*ret_ids = cordon_steal_ptr(&ids);
	return 0;
}

int cordon_active_none(const struct cordon_store *store, const struct cordon_project *project, const char *workspace,
		       const char *what, struct cordon_error *err)
{
	json_auto_t *ids = NULL;
	int r = cordon_active_list(store, project, workspace, &ids, err);
	size_t n = json_array_size(ids);

	if (r < 0 || n == 0)
		return r;
	r = cordon_fail(err, -EBUSY, CORDON_KIND_CONFLICT, "%s has a running session: %s%s", what,
			json_string_value(json_array_get(ids, 0)), n > 1 ? " and others" : "");
	cordon_error_hint(err, "stop it first: cordon session stop %s", json_string_value(json_array_get(ids, 0)));
	return r;
}

int cordon_active_add(const struct cordon_project *project, const char *workspace, const char *session,
		      struct cordon_error *err)
{
	char name[2 * CORDON_ID_SIZE];
	autofd int dir = -1;
	autofd int fd = -1;
	int r = open_active(project, &dir, err);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%s.%s", workspace, session);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? cordon_fail_errno(err, -errno, "cannot register the session") : 0;
}

void cordon_active_remove(const struct cordon_project *project, const char *workspace, const char *session)
{
	char name[2 * CORDON_ID_SIZE + 8];

	snprintf(name, sizeof(name), "active/%s.%s", workspace, session);
	unlinkat(project->state_fd, name, 0);
}
