/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that the agent of a step gets: its prompt, and context.md. */
#include <fcntl.h>

#include "base/io.h"
#include "base/path.h"
#include "base/resolve.h"
#include "base/text.h"
#include "flow/internal.h"
#include "flow/outputs.h"
#include "flow/template.h"

static int add_path(const struct cordon_flow_prompt *p, const struct cordon_flow_output *output, struct cordon_buf *out)
{
	char path[CORDON_PATH_MAX];
	int r = cordon_output_path(output, p->run->id, p->step->id, p->attempt, path, NULL);

	if (r == 0)
		r = cordon_buf_addf(out, "%s/%s", p->run_workspace, path);
	return r;
}

static int add_json(json_t *value, struct cordon_buf *out)
{
	json_auto_t *owned = value;
	autofree char *text = json_dumps(owned, JSON_COMPACT);

	return text ? cordon_buf_adds(out, text) : -ENOMEM;
}

static int add_paths_json(const struct cordon_flow_prompt *p, struct cordon_buf *out)
{
	json_t *paths = json_object();

	for (size_t i = 0; i < p->step->n_outputs; i++) {
		autobuf struct cordon_buf path = CORDON_BUF(2 * CORDON_PATH_MAX);

		if (p->step->outputs[i].file && add_path(p, &p->step->outputs[i], &path) == 0)
			json_object_set_new(paths, p->step->outputs[i].key, json_string(path.data));
	}
	return add_json(paths, out);
}

/* A JSON schema of the outputs. */
static int add_schema(const struct cordon_flow_prompt *p, struct cordon_buf *out)
{
	json_t *properties = json_object(), *required = json_array();

	for (size_t i = 0; i < p->step->n_outputs; i++) {
		const struct cordon_flow_output *output = &p->step->outputs[i];

		json_object_set_new(properties, output->key, json_pack("{s:s}", "type", "string"));
		if (!output->optional)
			json_array_append_new(required, json_string(output->key));
	}
	if (p->step->type == CORDON_FLOW_REVIEW)
		json_object_set_new(properties, "decision", json_pack("{s:[s,s]}", "enum", "approve", "reject"));
	if (p->step->type == CORDON_FLOW_REVIEW && !cordon_flow_output(p->step, "decision"))
		json_array_append_new(required, json_string("decision"));
	return add_json(json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties, "required", required),
			out);
}

static int add_text(const json_t *value, struct cordon_buf *out)
{
	return json_is_string(value) ? cordon_buf_add(out, json_string_value(value), json_string_length(value)) : 0;
}

/* "<step>.outputs.<key>"; nothing when the step has not finished yet. */
static int add_output(const struct cordon_flow_prompt *p, const char *rest, struct cordon_buf *out)
{
	const char *dot = strstr(rest, ".outputs.");
	char id[CORDON_FLOW_ID_MAX + 1];
	size_t i;

	if (!dot || cordon_copy(id, sizeof(id), rest, (size_t)(dot - rest)) < 0)
		return -ENOENT;
	i = cordon_workflow_step(p->run->workflow, id);
	if (i == SIZE_MAX)
		return -ENOENT;
	return add_text(json_object_get(p->progress->steps[i].outputs, dot + strlen(".outputs.")), out);
}

/* "<step>_<key>": an output of a step that has finished; nothing as long as there is none. */
static int add_state(const struct cordon_flow_prompt *p, const char *name, struct cordon_buf *out)
{
	for (size_t i = 0; i < p->run->workflow->n_steps; i++) {
		const char *id = p->run->workflow->steps[i].id;
		size_t n = strlen(id);
		const json_t *value;

		if (strncmp(name, id, n) != 0 || name[n] != '_')
			continue;
		value = json_object_get(p->progress->steps[i].outputs, name + n + 1);
		if (value)
			return add_text(value, out);
	}
	return 0;
}

static int add_workflow(const struct cordon_flow_prompt *p, const char *name, struct cordon_buf *out)
{
	const struct cordon_flow_output *output;

	if (cordon_streq(name, "run_id"))
		return cordon_buf_adds(out, p->run->id);
	if (cordon_streq(name, "step_id"))
		return cordon_buf_adds(out, p->step->id);
	if (cordon_streq(name, "attempt"))
		return cordon_buf_addf(out, "%u", p->attempt);
	if (cordon_streq(name, "run_workspace"))
		return cordon_buf_adds(out, p->run_workspace);
	if (cordon_streq(name, "output_schema_json"))
		return add_schema(p, out);
	if (cordon_streq(name, "output_paths_json"))
		return add_paths_json(p, out);
	if (strncmp(name, "output_paths.", 13) == 0)
		return (output = cordon_flow_output(p->step, name + 13)) && output->file ? add_path(p, output, out)
											 : -ENOENT;
	return add_text(json_object_get(p->run->context, name), out);
}

static int value_of(void *data, const char *text, size_t n, struct cordon_buf *out)
{
	const struct cordon_flow_prompt *p = data;
	char name[256];

	if (cordon_copy(name, sizeof(name), text, n) < 0)
		return -ENOENT;
	if (strncmp(name, "inputs.", 7) == 0)
		return add_text(json_object_get(p->run->inputs, name + 7), out);
	if (strncmp(name, "steps.", 6) == 0)
		return add_output(p, name + 6, out);
	if (strncmp(name, "state.", 6) == 0)
		return add_state(p, name + 6, out);
	return strncmp(name, "workflow.", 9) == 0 ? add_workflow(p, name + 9, out) : -ENOENT;
}

/* Where the outputs are wanted that are files: a prompt need not say it. */
static int add_files(const struct cordon_flow_prompt *p, struct cordon_buf *out)
{
	bool first = true;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->step->n_outputs; i++) {
		const struct cordon_flow_output *output = &p->step->outputs[i];

		if (!output->file)
			continue;
		if (first)
			r = cordon_buf_adds(out, "\n\nWrite each of these results as text to its file:\n");
		first = false;
		if (r == 0)
			r = cordon_buf_addf(out, "- %s%s: ", output->key, output->optional ? " (optional)" : "");
		if (r == 0)
			r = add_path(p, output, out);
		if (r == 0)
			r = cordon_buf_addc(out, '\n');
	}
	return r;
}

/* What cordon itself says about the answer. The token makes it known as the answer of this attempt (envelope.h). */
static int add_contract(const struct cordon_flow_prompt *p, struct cordon_buf *out)
{
	int r = add_files(p, out);

	if (r < 0 || !p->step->envelope)
		return r;
	r = cordon_buf_adds(out,
			    "\n\nEnd your answer with exactly one block of this form, on lines of its own. Its JSON object "
			    "has the token as given here, and every required key of this schema:\n");
	if (r == 0)
		r = add_schema(p, out);
	return r < 0 ? r
		     : cordon_buf_addf(
			       out,
			       "\n[workflow_result]{\"token\": \"%s\", \"status\": \"complete\"%s}[/workflow_result]\n",
			       p->token,
			       p->step->type == CORDON_FLOW_REVIEW ? ", \"decision\": \"approve or reject\"" : "");
}

int cordon_flow_prompt(const struct cordon_flow_prompt *prompt, struct cordon_buf *ret_text, struct cordon_error *err)
{
	/* The callback has no place for a const pointer; it changes nothing. */
	struct cordon_flow_prompt copy = *prompt;
	int r = cordon_template_expand(prompt->step->prompt ? prompt->step->prompt : "", value_of, &copy, ret_text, err);

	if (r == 0 && prompt->step->context) {
		r = cordon_buf_adds(ret_text, "\n\n");
		r = r < 0 ? cordon_fail_errno(err, r, "cannot write the prompt")
			  : cordon_template_expand(prompt->step->context, value_of, &copy, ret_text, err);
	}
	if (r == 0 && (r = add_contract(prompt, ret_text)) < 0)
		cordon_fail_errno(err, r, "cannot write the prompt");
	return r < 0 ? cordon_error_prefix(err, r, "the prompt of %s", prompt->step->id) : 0;
}

int cordon_flow_context(const struct cordon_flow_prompt *p, const struct cordon_orchestrator *orchestrator,
			struct cordon_buf *out, struct cordon_error *err)
{
	int r = cordon_buf_addf(out,
				"# %s\n\nStep `%s` of the workflow `%s`, attempt %u.\n\n"
				"- private workspace, where the step starts: `%s`%s\n- run workspace: `%s`\n\n"
				"## Shared areas\n\n",
				p->run->id, p->step->id, p->run->workflow->id, p->attempt, p->run->private_path,
				p->step->run_workspace ? " (read-only)" : "", p->run_workspace);

	if (r == 0 && !orchestrator->n_grants)
		r = cordon_buf_adds(out, "None.\n");
	for (size_t i = 0; r == 0 && i < orchestrator->n_grants; i++) {
		const struct cordon_area_grant *grant = &orchestrator->grants[i];

		r = cordon_buf_addf(out, "- `%s` (%s): `%s`, also `%s/shared/%s`. ", grant->area->key,
				    grant->read_only ? "read-only" : "read-write", grant->area->path,
				    p->run->private_path, grant->area->key);
		if (r == 0)
			r = cordon_text_escape(out, grant->area->description, strlen(grant->area->description));
		if (r == 0)
			r = cordon_buf_addc(out, '\n');
	}
	return r < 0 ? cordon_fail_errno(err, r, "cannot write context.md") : 0;
}

int cordon_flow_prompt_file(int private_fd, const char *path, struct cordon_buf *ret_text, struct cordon_error *err)
{
	autofd int fd = cordon_open_beneath(private_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;

	if (r == 0 && (uint64_t)st.st_size > CORDON_FLOW_PROMPT_MAX)
		r = -E2BIG;
	if (r == 0)
		r = cordon_read_fd(fd, path, ret_text, NULL);
	if (r == 0 && (memchr(ret_text->data ? ret_text->data : "", '\0', ret_text->len) ||
		       !cordon_utf8_valid(ret_text->data ? ret_text->data : "", ret_text->len)))
		return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "%s is not text in UTF-8", path);
	return r < 0 ? cordon_fail_errno(err, r, "cannot read the prompt %s", path) : 0;
}
