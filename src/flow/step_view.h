/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private workspace of a step that may write to it is a copy-on-write view (view/view.h). What the step changed comes
 * into the private workspace when the step has finished, all of it or nothing; what a failed, ended or killed attempt changed
 * goes, and the next attempt does not see it. The journal names the view before it is made, and again with the end of an
 * attempt that finished, so that whoever continues the run knows what to do with it.
 */
#ifndef CORDON_FLOW_STEP_VIEW_H
#define CORDON_FLOW_STEP_VIEW_H

#include "flow/internal.h"
#include "view/view.h"

/* Makes the view with this id for a run of `spec`, which gets its path. The caller closes it, which does not remove it. */
int cordon_step_view_make(const struct cordon_home *home, const char *id, struct cordon_run_spec *spec,
			  struct cordon_view *ret_view, struct cordon_error *err);
/*
 * When the agent has ended: makes what it changed durable, and judges whether that can be taken over. -EEXIST when somebody
 * else changed the same files meanwhile. *ret_changed is false, and the view is gone, when there is nothing to take over.
 * *ret_lock keeps the steps of other runs of this orchestrator from taking over theirs before the caller closes it.
 */
int cordon_step_view_judge(const struct cordon_home *home, const char *orchestrator, struct cordon_view *view,
			   const char *run_id, bool *ret_changed, int *ret_lock, struct cordon_error *err);
/* Brings what the step changed into the private workspace, and removes the view. May be called again after any failure; a
 * view that is gone was taken over already. */
int cordon_step_view_take(const struct cordon_home *home, const char *id, struct cordon_error *err);
/* Removes the view, if there is one. */
void cordon_step_view_drop(const struct cordon_home *home, const char *id);
/* Removes the views of all attempts but `kept`, which may be NULL. */
void cordon_step_views_clear(const struct cordon_home *home, const json_t *events, const char *kept);

#endif
