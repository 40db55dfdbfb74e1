/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program in a new view. */
#include "run/result.h"
#include "view/internal.h"

int cordon_view_run(const struct cordon_home *home, const struct cordon_run_spec *spec,
		    struct cordon_view_request *request, const struct cordon_observer *observer,
		    struct cordon_result *ret_result, struct cordon_error *err)
{
	struct cordon_run_spec in_view = *spec;
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	struct cordon_error own = { 0 };
	bool removed = false;
	int r, ended;

	err = err ? err : &own;
	*ret_result = (struct cordon_result){ 0 };
	request->policy = spec->policy;
	request->argv = spec->argv;
	r = cordon_view_create(home, request, &view, err);
	if (r < 0) {
		cordon_result_refuse(ret_result, err);
		return r;
	}
	in_view.view = view.path;
	r = cordon_run(&in_view, observer, ret_result, err);
	ended = cordon_view_end(home, &view, ret_result->run_id, false, &removed, r < 0 ? NULL : err);
	if (removed)
		ret_result->view_id[0] = '\0';
	/* The program ran; that the record could not be written is not its fault, and the next reader repairs it. */
	if (ended < 0 && r == 0 && !ret_result->error.code)
		ret_result->error = *err;
	return r;
}
