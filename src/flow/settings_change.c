/* SPDX-License-Identifier: Apache-2.0 */
/* A change of the settings, and its effect on what runs. */
#include "flow/edit.h"
#include "flow/flow.h"

/* Whether a change left an orchestrator with less of an area than it had: nothing, or reading only. */
static bool narrowed(const struct cordon_settings_edited *edited, const char *id, const char *key)
{
	const struct cordon_orchestrator *then = NULL, *now = NULL;
	const struct cordon_area_grant *was, *is;

	if (cordon_settings_orchestrator(edited->before, id, &then, NULL) < 0)
		return false;
	(void)cordon_settings_orchestrator(edited->after, id, &now, NULL);
	was = cordon_orchestrator_grant(then, key);
	is = now ? cordon_orchestrator_grant(now, key) : NULL;
	return was && (!is || (is->read_only && !was->read_only));
}

/* Whether the change took access away, and which area: NULL means any. A second revocation counts too: it ends what the first one
 * kept running. */
static bool takes_away(const struct cordon_settings_edit *edit, const struct cordon_settings_edited *edited,
		       const char **ret_area)
{
	const struct cordon_orchestrator *old = NULL;

	*ret_area = edit->key;
	if (edit->kind == CORDON_EDIT_REVOKE)
		return true;
	if (edit->kind == CORDON_EDIT_GRANT)
		return narrowed(edited, edit->id, edit->key);
	*ret_area = NULL;
	return edit->kind == CORDON_EDIT_REMOVE_ORCHESTRATOR &&
	       cordon_settings_orchestrator(edited->before, edit->id, &old, NULL) == 0 && old->n_grants;
}

int cordon_settings_change(const struct cordon_home *home, const struct cordon_settings_edit *edit,
			   struct cordon_settings_edited *ret_edited, json_t **ret_holders, struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };
	const char *area;
	int r = cordon_settings_edit(edit, ret_edited, errors);

	*ret_holders = NULL;
	if (r < 0 || !takes_away(edit, ret_edited, &area))
		return r;
	r = cordon_flow_end_holders(home, edit->id, area, edit->keep_running, ret_holders, &err);
	if (r < 0)
		cordon_errors_add(errors, &err, NULL, 0, 0);
	return r;
}
