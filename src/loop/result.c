/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a call as an object and in the file of results; and file types that a scope did not know. */
#include <fcntl.h>
#include <stdio.h>

#include "audit/audit.h"
#include "base/io.h"
#include "base/path.h"
#include "base/time.h"
#include "loop/internal.h"

#define RESULTS "results"
#define EXTENSION_MAX 16

/* A file is one before or after the change. */
static json_t *changed_files(const struct cordon_delta *changed)
{
	json_t *files = json_array();

	for (size_t i = 0; i < changed->n; i++) {
		const struct cordon_delta_change *change = &changed->changes[i];

		if (!S_ISDIR(change->kind == CORDON_DELTA_DELETED ? change->old.mode : change->new.mode))
			json_array_append_new(files, cordon_audit_text(change->path));
	}
	return files;
}

static void append_line(const struct cordon_loop *loop, const json_t *result)
{
	autofd int fd = openat(loop->dir_fd, RESULTS, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	autofree char *text = json_dumps(result, JSON_COMPACT);
	size_t n = text ? strlen(text) : 0;

	if (fd < 0 || !text)
		return;
	text[n] = '\n';
	(void)cordon_write_all(fd, text, n + 1);
}

json_t *cordon_loop_result(const struct cordon_loop *loop, const struct cordon_loop_call *call, bool success,
			   const char *error)
{
	const struct cordon_loop_story *one = &loop->stories[call->story];
	const struct cordon_job *job = &call->agent_job;
	int64_t duration = job->started && job->ended > job->started ? job->ended - job->started : 0;
	char now[CORDON_TIME_SIZE];
	CORDON_UNCLEARED char log[CORDON_PATH_MAX];
	json_t *result;

	cordon_time_format(cordon_time_now(), now);
	if (cordon_concat(log, sizeof(log), loop->dir, "/logs/", call->logs.name, "/combined.log", (char *)NULL) < 0)
		log[0] = '\0';
	/* What agents report of tokens is not known here. */
	result = json_pack("{s:s, s:s, s:b, s:i, s:I, s:n, s:n, s:s?, s:s, s:s?, s:o, s:i, s:s, s:I, s:I, s:s}",
			   "story_id", one->story->id, "prd", loop->options.prds[one->prd].path, "success",
			   (int)success, "exit_code", job->state == CORDON_JOB_TIMEOUT ? 124 : job->exit_code,
			   "duration_ms", (json_int_t)duration, "tokens_in", "tokens_out", "model", one->story->model,
			   "log_file", log, "error", error, "files_changed", changed_files(&call->changed),
			   "delegation_depth", 0, "timestamp", now, "attempt", (json_int_t)call->attempt, "violations",
			   (json_int_t)job->violations, "session_id", job->run_id);
	if (result && json_array_size(call->outside))
		json_object_set(result, "outside_scope", call->outside);
	if (result)
		append_line(loop, result);
	return result;
}

/* ---- file types ---- */

/* The extension of a file, without its dot; NULL when it has none that a pattern should name. */
static const char *extension_of(const char *path)
{
	const char *base = cordon_path_base(path), *dot = strrchr(base, '.');
	size_t n = dot ? strlen(dot + 1) : 0;

	if (!dot || dot == base || n < 1 || n > EXTENSION_MAX ||
	    strspn(dot + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != n)
		return NULL;
	return dot + 1;
}

/* Adds FOLDER / ** / *.EXT to the list, unless the inferred scope or the list has it. */
static int add_type(const struct cordon_loop_prd *prd, size_t folder, const char *extension, json_t *list)
{
	json_auto_t *inferred = NULL;
	autofree char *pattern = NULL;
	const char *first;
	json_t *known;
	size_t i;

	if (cordon_prd_infer_scope(&prd->items[folder], 1, 0, &inferred, NULL) < 0)
		return -EINVAL;
	first = json_string_value(json_array_get(inferred, 0)); /* it ends with ".sh" */
	if (!first || asprintf(&pattern, "%.*s%s", (int)strlen(first) - 2, first, extension) < 0)
		return -ENOMEM;
	json_array_foreach(inferred, i, known)
		if (cordon_streq(json_string_value(known), pattern))
			return 0;
	json_array_foreach(list, i, known)
		if (cordon_streq(json_string_value(known), pattern))
			return 0;
	return json_array_append_new(list, json_string(pattern)) < 0 ? -ENOMEM : 1;
}

/* Collects the file types of a result that its inferred scope does not have. Returns whether there is a new one. */
static bool collect(const struct cordon_loop *loop, const struct cordon_loop_accepted *item, json_t *list)
{
	const struct cordon_loop_prd *prd = &loop->options.prds[loop->stories[item->story].prd];
	bool found = false;

	if (!prd->n_items || !cordon_loop_scope_inferred(loop, item->story))
		return false;
	for (size_t i = 0; i < item->layer.n; i++) {
		const struct cordon_layer_entry *entry = &item->layer.items[i];
		const char *extension = S_ISREG(entry->mode) ? extension_of(entry->path) : NULL;

		for (size_t f = 0; extension && f < prd->n_items; f++)
			if (cordon_path_within(entry->path, prd->items[f])) {
				found |= add_type(prd, f, extension, list) > 0;
				break;
			}
	}
	return found;
}

static int write_types(struct cordon_loop *loop, size_t p, const json_t *list, struct cordon_error *err)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	const struct cordon_loop_prd *prd = &loop->options.prds[p];
	size_t n = loop->prds[p]->n_stories, used = 0;
	autofree struct cordon_prd_edit *edits = calloc(n + 1, sizeof(*edits));
	json_auto_t *scope = NULL;
	int r = edits ? cordon_prd_infer_scope(prd->items, prd->n_items, 0, &scope, err)
		      : cordon_fail_errno(err, -ENOMEM, "fileScope");

	if (r < 0)
		return r;
	json_array_extend(scope, (json_t *)(uintptr_t)list);
	for (size_t i = 0; i < n; i++)
		if (cordon_loop_scope_inferred(loop, loop->first[p] + i))
			edits[used++] = (struct cordon_prd_edit){ .id = loop->prds[p]->stories[i].id, .scope = scope };
	r = used ? cordon_prd_apply(prd->path, edits, used, &errors) : 0;
	return r < 0 ? cordon_errors_first(&errors, err) : 0;
}

int cordon_loop_update_scope(struct cordon_loop *loop, size_t from, struct cordon_error *err)
{
	bool write = loop->options.update_scope == CORDON_UPDATE_SCOPE_WRITE;
	int r = 0;

	for (size_t p = 0; r == 0 && p < loop->options.n_prds; p++) {
		bool found = false;

		if (loop->options.update_scope == CORDON_UPDATE_SCOPE_OFF)
			break;
		if (!loop->types[p] && !(loop->types[p] = json_array()))
			return cordon_fail_errno(err, -ENOMEM, "fileScope");
		for (size_t i = from; i < loop->n_stack; i++)
			if (loop->stories[loop->stack[i].story].prd == p)
				found |= collect(loop, &loop->stack[i], loop->types[p]);
		if (!found)
			continue;
		if (write)
			r = write_types(loop, p, loop->types[p], err);
		if (r == 0)
			cordon_loop_tell(loop, json_pack("{s:s, s:s, s:O, s:b}", "event", "types", "prd",
							 loop->options.prds[p].path, "patterns", loop->types[p],
							 "written", (int)write));
	}
	return r;
}
