/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program in a new view. */
#include <stdio.h>

#include "run/result.h"
#include "view/internal.h"

static void free_layers(char **paths, size_t n)
{
	for (size_t i = 0; paths && i < n; i++)
		free(paths[i]);
	free(paths);
}

/* The upper layers of the views below a new one. The caller frees all of it. */
static int name_layers(const struct cordon_home *home, const json_t *layers, char ***ret_paths, size_t *ret_n,
		       struct cordon_error *err)
{
	size_t n = json_array_size(layers);
	char **paths = calloc(n + 1, sizeof(*paths));

	for (size_t i = 0; paths && i < n; i++) {
		const char *id = json_string_value(json_array_get(layers, i));

		if (!id || asprintf(&paths[i], "%s/state/views/%s/" CORDON_VIEW_UPPER, home->path, id) < 0)
			paths[i] = NULL;
		if (!paths[i]) {
			free_layers(paths, i);
			paths = NULL;
		}
	}
	if (!paths)
		return cordon_no_memory(err);
	*ret_paths = paths;
	*ret_n = n;
	return 0;
}

int cordon_view_run(const struct cordon_home *home, const struct cordon_run_spec *spec,
		    struct cordon_view_request *request, const struct cordon_observer *observer,
		    struct cordon_result *ret_result, struct cordon_error *err)
{
	struct cordon_run_spec in_view = *spec;
	autoview struct cordon_view view = CORDON_VIEW_NONE;
	struct cordon_error own = { 0 };
	bool removed = false;
	char **layers = NULL;
	size_t n = 0;
	int r, ended;

	err = err ? err : &own;
	*ret_result = (struct cordon_result){ 0 };
	request->policy = spec->policy;
	request->argv = spec->argv;
	r = name_layers(home, request->layers, &layers, &n, err);
	if (r == 0)
		r = cordon_view_create(home, request, &view, err);
	if (r < 0) {
		free_layers(layers, n);
		cordon_result_refuse(ret_result, err);
		return r;
	}
	in_view.view = view.path;
	in_view.view_layers = layers;
	in_view.n_view_layers = n;
	r = cordon_run(&in_view, observer, ret_result, err);
	free_layers(layers, n);
	ended = cordon_view_end(home, &view, ret_result->run_id, false, &removed, r < 0 ? NULL : err);
	if (removed)
		ret_result->view_id[0] = '\0';
	/* The program ran; that the record could not be written is not its fault, and the next reader repairs it. */
	if (ended < 0 && r == 0 && !ret_result->error.code)
		ret_result->error = *err;
	return r;
}
