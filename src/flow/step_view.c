/* SPDX-License-Identifier: Apache-2.0 */
/* The views in which steps change the private workspace of their orchestrator. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/lock.h"
#include "flow/step_view.h"
#include "state/kinds.h"
#include "view/apply.h"

int cordon_step_view_make(const struct cordon_home *home, const char *id, struct cordon_run_spec *spec,
			  struct cordon_view *ret_view, struct cordon_error *err)
{
	struct cordon_view_request request = { .id = id, .policy = spec->policy, .argv = spec->argv };
	int r = cordon_view_create(home, &request, ret_view, err);

	if (r < 0)
		return cordon_error_prefix(err, r, "a view of the private workspace");
	spec->view = ret_view->path;
	return 0;
}

/* The lock is in a directory that no sandbox shows, so no agent can hold it. */
static int lock(const struct cordon_home *home, const char *orchestrator, int *ret_fd, struct cordon_error *err)
{
	char name[CORDON_SETTINGS_ID_MAX + 16];
	autofd int dir = -1;
	autofd int fd = -1;
	int r = cordon_state_kind_open(home, CORDON_STATE_KIND_WORKFLOWS, &dir, err);

	if (r < 0)
		return r;
	(void)cordon_concat(name, sizeof(name), ".taking-", orchestrator, (char *)NULL);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : cordon_lock(fd, LOCK_EX);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock the private workspace of %s", orchestrator);
	*ret_fd = cordon_steal_fd(&fd);
	return 0;
}

/* Says what is in the way, with its name. */
static int explain(const struct cordon_apply_result *result, int r, struct cordon_error *err)
{
	const struct cordon_apply_item *item = result->refused.n     ? &result->refused.item[0]
					       : result->conflicts.n ? &result->conflicts.item[0]
								     : NULL;

	if (!item)
		return r;
	return cordon_fail(err, r, result->refused.n ? CORDON_KIND_POLICY_DENIED : CORDON_KIND_CONFLICT,
			   "what the step did to %.200s can't be taken over: %s", item->path,
			   item->why ? item->why : "it may not be changed");
}

int cordon_step_view_judge(const struct cordon_home *home, const char *orchestrator, struct cordon_view *view,
			   const char *run_id, bool *ret_changed, int *ret_lock, struct cordon_error *err)
{
	static const struct cordon_apply_request request = { .only_judge = true };
	autoapply struct cordon_apply_result result = { 0 };
	autofd int held = -1;
	bool removed = false;
	int r = cordon_view_end(home, view, run_id, false, &removed, err);

	*ret_changed = !removed;
	if (r < 0 || removed)
		return r;
	if (syncfs(view->dir_fd) < 0)
		return cordon_fail_errno(err, -errno, "cannot write what the step changed to the disk");
	r = lock(home, orchestrator, &held, err);
	if (r == 0) {
		r = cordon_view_apply(view, &request, &result, err);
		r = r < 0 ? explain(&result, r, err) : 0;
	}
	if (r == 0)
		*ret_lock = cordon_steal_fd(&held);
	return r;
}

int cordon_step_view_take(const struct cordon_home *home, const char *id, struct cordon_error *err)
{
	static const struct cordon_apply_request request = { 0 };
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	autoapply struct cordon_apply_result result = { 0 };
	int r = cordon_view_open(home, id, &view, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (view.record.state == CORDON_VIEW_APPLIED)
		return cordon_view_lock(&view, NULL) < 0 ? 0 : cordon_view_remove(home, &view, err);
	r = cordon_view_apply(&view, &request, &result, err);
	cordon_view_audit(home, &view, "apply", &result, r < 0 ? err : NULL);
	if (r < 0) {
		r = explain(&result, r, err);
		return cordon_error_prefix(err, r, "the view %s is kept", id);
	}
	return cordon_view_remove(home, &view, err);
}

void cordon_step_view_drop(const struct cordon_home *home, const char *id)
{
	autoview struct cordon_view view = CORDON_VIEW_NONE;

	if (cordon_view_open(home, id, &view, NULL) == 0)
		(void)cordon_view_discard(home, &view, NULL);
}

void cordon_step_views_clear(const struct cordon_home *home, const json_t *events, const char *kept)
{
	const json_t *event;
	size_t i;

	json_array_foreach(events, i, event) {
		const char *what = cordon_json_string(event, "event");
		const char *id = cordon_json_string(event, "view");

		if (what && id && cordon_streq(what, "attempt") && !(kept && cordon_streq(id, kept)))
			cordon_step_view_drop(home, id);
	}
}
