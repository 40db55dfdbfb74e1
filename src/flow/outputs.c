/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the outputs of a step out of the run directory and the envelope. */
#include <fcntl.h>
#include <stdio.h>

#include "base/dirs.h"
#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/resolve.h"
#include "base/text.h"
#include "flow/outputs.h"
#include "flow/template.h"

struct names {
	const char *run_id, *step_id;
	unsigned int attempt;
};

static int name_value(void *data, const char *name, size_t n, struct cordon_buf *out)
{
	const struct names *names = data;

	if (n == strlen("workflow.run_id") && memcmp(name, "workflow.run_id", n) == 0)
		return cordon_buf_adds(out, names->run_id);
	if (n == strlen("workflow.step_id") && memcmp(name, "workflow.step_id", n) == 0)
		return cordon_buf_adds(out, names->step_id);
	if (n == strlen("workflow.attempt") && memcmp(name, "workflow.attempt", n) == 0)
		return cordon_buf_addf(out, "%u", names->attempt);
	return -ENOENT;
}

int cordon_output_path(const struct cordon_flow_output *output, const char *run_id, const char *step_id,
		       unsigned int attempt, char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	struct names names = { .run_id = run_id, .step_id = step_id, .attempt = attempt };
	autobuf struct cordon_buf path = CORDON_BUF(CORDON_PATH_MAX / 2);
	int r = cordon_template_expand(output->file, name_value, &names, &path, err);

	if (r < 0)
		return r;
	if (!path.data || !cordon_flow_path_valid(path.data))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "not a path for the output %s", output->key);
	return cordon_copy(ret, CORDON_PATH_MAX, path.data, path.len);
}

/* Opens the directory of a path, without links; *ret_name is the last name. */
static int open_parent(int dir_fd, const char *path, const char **ret_name)
{
	char dir[CORDON_PATH_MAX] = "";
	const char *name = cordon_path_base(path);

	if (name > path && cordon_copy(dir, sizeof(dir), path, (size_t)(name - path) - 1) < 0)
		return -ENAMETOOLONG;
	*ret_name = name;
	return cordon_open_beneath(dir_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Makes the directories on the way to a path; what an earlier agent put there is not followed. */
static int make_parents(int dir_fd, const char *path)
{
	char dir[CORDON_PATH_MAX];

	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		autofd int parent = -1;
		const char *name;

		if (cordon_copy(dir, sizeof(dir), path, (size_t)(slash - path)) < 0)
			return -ENAMETOOLONG;
		parent = open_parent(dir_fd, dir, &name);
		if (parent < 0)
			return parent;
		if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

int cordon_outputs_clear(int dir_fd, const struct cordon_flow_step *step, const char *run_id, unsigned int attempt,
			 struct cordon_error *err)
{
	for (size_t i = 0; i < step->n_outputs; i++) {
		char path[CORDON_PATH_MAX];
		autofd int parent = -1;
		const char *name;
		int r;

		if (!step->outputs[i].file)
			continue;
		r = cordon_output_path(&step->outputs[i], run_id, step->id, attempt, path, err);
		if (r < 0)
			return r;
		r = make_parents(dir_fd, path);
		parent = r < 0 ? r : open_parent(dir_fd, path, &name);
		if (parent < 0)
			return cordon_fail_errno(err, parent, "cannot make room for the output %s at %s",
						 step->outputs[i].key, path);
		r = cordon_dirs_remove(parent, name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Reads a file that the agent may have made in any way. */
static int read_output(int dir_fd, const char *path, const char *key, struct cordon_buf *text, struct cordon_error *err)
{
	autofd int parent = -1;
	autofd int fd = -1;
	struct stat st = { 0 };
	const char *name;
	int r;

	parent = open_parent(dir_fd, path, &name);
	if (parent >= 0)
		fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	r = parent < 0 ? parent : fd < 0 ? -errno : fstat(fd, &st) < 0 ? -errno : 0;
	if (r == -ENOENT)
		return -ENOENT;
	if (r == -ELOOP || r == -ENOTDIR)
		return cordon_fail(err, r, CORDON_KIND_POLICY_DENIED, "the output %s (%s) is or lies behind a link",
				   key, path);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot read the output %s (%s)", key, path);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return cordon_fail(err, -EINVAL, CORDON_KIND_POLICY_DENIED,
				   "the output %s (%s) is no regular file with one name", key, path);
	if ((uint64_t)st.st_size > CORDON_OUTPUT_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the output %s (%s) is larger than %zu bytes", key,
				   path, CORDON_OUTPUT_MAX);
	r = cordon_read_fd(fd, path, text, NULL);
	return r < 0 ? cordon_fail_errno(err, r, "cannot read the output %s (%s)", key, path) : 0;
}

static int take_file(int dir_fd, const struct cordon_flow_output *output, const char *path, json_t *outputs,
		     size_t *total, struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_OUTPUT_MAX);
	int r = read_output(dir_fd, path, output->key, &text, err);

	if (r == -ENOENT)
		return output->optional
			       ? 0
			       : cordon_fail(err, -ENOENT, CORDON_KIND_CONFIG,
					     "the output %s is missing: there is no file %s", output->key, path);
	if (r < 0)
		return r;
	if (memchr(text.data ? text.data : "", '\0', text.len) ||
	    !cordon_utf8_valid(text.data ? text.data : "", text.len))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "the output %s (%s) is not text in UTF-8",
				   output->key, path);
	if (!text.len && !output->optional)
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "the output %s (%s) is empty", output->key, path);
	*total += text.len;
	if (json_object_set_new(outputs, output->key, json_stringn(text.data ? text.data : "", text.len)) < 0)
		return cordon_fail_errno(err, -ENOMEM, "cannot take the output %s", output->key);
	return 1;
}

/* A value of the envelope becomes text: a string as it is, anything else as JSON. */
static int take_value(const struct cordon_flow_output *output, const json_t *envelope, json_t *outputs, size_t *total,
		      struct cordon_error *err)
{
	const json_t *inner = json_object_get(envelope, "outputs");
	json_t *value = json_object_get(json_is_object(inner) ? inner : envelope, output->key);
	autofree char *text = NULL;

	if (!value)
		value = json_object_get(envelope, output->key);
	if (!value || json_is_null(value))
		return output->optional ? 0
					: cordon_fail(err, -ENOENT, CORDON_KIND_CONFIG,
						      "the output %s is missing in the agent's result", output->key);
	text = json_is_string(value) ? strdup(json_string_value(value))
				     : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	if (!text)
		return cordon_fail_errno(err, -ENOMEM, "cannot take the output %s", output->key);
	if (strlen(text) > CORDON_OUTPUT_MAX)
		return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT, "the output %s is larger than %zu bytes",
				   output->key, CORDON_OUTPUT_MAX);
	*total += strlen(text);
	return json_object_set_new(outputs, output->key, json_string(text)) < 0
		       ? cordon_fail_errno(err, -ENOMEM, "cannot take the output %s", output->key)
		       : 0;
}

/* One word, approve or reject; case and blanks around it do not matter. */
static int take_decision(json_t *outputs, const json_t *envelope, bool *ret_approve, struct cordon_error *err)
{
	const char *text = cordon_json_string(outputs, "decision"), *end;
	char word[16] = "";

	if (!text)
		text = cordon_json_string(envelope, "decision");
	if (!text)
		return cordon_fail(err, -ENOENT, CORDON_KIND_CONFIG, "the review has no decision");
	text += strspn(text, " \t\r\n");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]))
		end--;
	if (cordon_copy(word, sizeof(word), text, (size_t)(end - text)) < 0 ||
	    (strcasecmp(word, "approve") != 0 && strcasecmp(word, "reject") != 0))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG,
				   "the decision of the review is neither approve nor reject");
	*ret_approve = strcasecmp(word, "approve") == 0;
	json_object_set_new(outputs, "decision", json_string(*ret_approve ? "approve" : "reject"));
	return 0;
}

static int take_all(int dir_fd, const struct cordon_flow_step *step, const struct names *names, const json_t *envelope,
		    json_t *outputs, json_t *files, struct cordon_error *err)
{
	size_t total = 0;

	for (size_t i = 0; i < step->n_outputs; i++) {
		const struct cordon_flow_output *output = &step->outputs[i];
		char path[CORDON_PATH_MAX];
		int r;

		if (!output->file) {
			r = take_value(output, envelope, outputs, &total, err);
		} else {
			r = cordon_output_path(output, names->run_id, names->step_id, names->attempt, path, err);
			if (r == 0)
				r = take_file(dir_fd, output, path, outputs, &total, err);
			if (r == 1)
				json_array_append_new(files, json_string(path));
		}
		if (r < 0)
			return r;
		if (total > CORDON_OUTPUTS_MAX)
			return cordon_fail(err, -E2BIG, CORDON_KIND_LIMIT,
					   "the outputs are larger than %zu bytes together", CORDON_OUTPUTS_MAX);
	}
	return 0;
}

int cordon_outputs_take(int dir_fd, const struct cordon_flow_step *step, const char *run_id, unsigned int attempt,
			const json_t *envelope, json_t **ret_outputs, json_t **ret_files, bool *ret_approve,
			struct cordon_error *err)
{
	struct names names = { .run_id = run_id, .step_id = step->id, .attempt = attempt };
	json_auto_t *outputs = json_object();
	json_auto_t *files = json_array();
	bool approve = true;
	int r;

	if (step->envelope && !envelope)
		return cordon_fail(err, -ENOENT, CORDON_KIND_CONFIG, "the agent's answer has no result");
	r = take_all(dir_fd, step, &names, envelope, outputs, files, err);
	if (r == 0 && step->type == CORDON_FLOW_REVIEW)
		r = take_decision(outputs, envelope, &approve, err);
	if (r < 0)
		return r;
	*ret_outputs = cordon_steal_ptr(&outputs);
	*ret_files = cordon_steal_ptr(&files);
	*ret_approve = approve;
	return 0;
}
