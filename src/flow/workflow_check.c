/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a workflow as a whole: every step, output and value that it names must exist. */
#include <stdio.h>

#include "base/path.h"
#include "flow/template.h"
#include "flow/workflow_check.h"

struct checking {
	const struct cordon_reader *in;
	struct cordon_workflow *workflow;
	struct cordon_flow_step *step;
	const struct cordon_flow_refs *refs;
};

size_t cordon_workflow_step(const struct cordon_workflow *workflow, const char *id)
{
	for (size_t i = 0; i < workflow->n_steps; i++)
		if (workflow->steps[i].id && cordon_streq(workflow->steps[i].id, id))
			return i;
	return SIZE_MAX;
}

const struct cordon_flow_output *cordon_flow_output(const struct cordon_flow_step *step, const char *key)
{
	for (size_t i = 0; i < step->n_outputs; i++)
		if (cordon_streq(step->outputs[i].key, key))
			return &step->outputs[i];
	return NULL;
}

bool cordon_flow_path_valid(const char *path)
{
	char clean[CORDON_PATH_MAX];

	return path[0] && path[0] != '/' && cordon_path_clean(path, clean, sizeof(clean)) == 0 &&
	       cordon_streq(path, clean) && clean[0];
}

static void refuse(const struct checking *c, const struct cordon_node *node, const char *hint, const char *message)
{
	cordon_node_fail(c->in->doc, node, c->in->errors, hint, "%s", message);
}

static const char *name_of(const struct checking *c)
{
	return c->step->id ? c->step->id : "";
}

/* ---- what steps refer to ---- */

static size_t find_step(const struct checking *c, const struct cordon_node *node, const char *id)
{
	size_t i = cordon_workflow_step(c->workflow, id);
	bool ends = cordon_streq(id, "done") || cordon_streq(id, "end");

	if (i == SIZE_MAX)
		cordon_node_fail(c->in->doc, node, c->in->errors,
				 ends ? "to end the workflow there, leave the key out" : NULL, "there is no step %s",
				 id);
	return i;
}

static void check_next(const struct checking *c)
{
	bool review = c->step->type != CORDON_FLOW_TASK;

	if (c->refs->next && review)
		refuse(c, c->refs->next->key, "use on_approve and on_reject", "a review has no 'next'");
	else if (c->refs->next)
		c->step->next = find_step(c, c->refs->next, c->refs->next->text);
	if ((c->refs->on_approve || c->refs->on_reject) && !review)
		refuse(c, c->refs->on_approve ? c->refs->on_approve->key : c->refs->on_reject->key, "use next",
		       "only a review has 'on_approve' and 'on_reject'");
	if (c->refs->on_approve && review)
		c->step->on_approve = find_step(c, c->refs->on_approve, c->refs->on_approve->text);
	if (c->refs->on_reject && review) {
		c->step->on_reject = find_step(c, c->refs->on_reject, c->refs->on_reject->text);
		c->step->has_on_reject = true;
	}
}

static int check_needs(const struct checking *c)
{
	const struct cordon_node *list = c->refs->needs;
	size_t *needs;

	if (!list || !c->refs->needs_ids)
		return 0;
	needs = cordon_document_alloc(c->in->doc, (list->n + 1) * sizeof(*needs));
	if (!needs)
		return -ENOMEM;
	for (const struct cordon_node *item = list->first; item; item = item->next) {
		size_t i = item->type == CORDON_NODE_SCALAR && cordon_flow_id_valid(item->text)
				   ? find_step(c, item, item->text)
				   : SIZE_MAX;

		if (i == SIZE_MAX)
			continue;
		if (&c->workflow->steps[i] == c->step)
			refuse(c, item, NULL, "a step can't need itself");
		else
			needs[c->step->n_needs++] = i;
	}
	c->step->needs = needs;
	return 0;
}

/* ---- outputs ---- */

/* A path's template may use these only: the path must be known before the agent runs. */
static void check_file(const struct checking *c, const struct cordon_node *node)
{
	static const char *const allowed[] = { "workflow.run_id", "workflow.step_id", "workflow.attempt" };
	autobuf struct cordon_buf path = CORDON_BUF(CORDON_PATH_MAX);
	struct cordon_template_piece piece;
	size_t at = 0;
	bool bad = false;

	while (cordon_template_next(node->text, node->len, &at, &piece, &bad) && !bad) {
		bool known = !piece.is_name;

		for (size_t i = 0; !known && i < CORDON_ARRAY_SIZE(allowed); i++)
			known = strlen(allowed[i]) == piece.n && memcmp(allowed[i], piece.text, piece.n) == 0;
		if (!known)
			cordon_node_fail(c->in->doc, node, c->in->errors,
					 "workflow.run_id, workflow.step_id and workflow.attempt can be used",
					 "the path of an output has no value {{%.*s}}",
					 (int)(piece.n > 80 ? 80 : piece.n), piece.text);
		if (cordon_buf_add(&path, piece.is_name ? "x" : piece.text, piece.is_name ? 1 : piece.n) < 0)
			bad = true;
	}
	if (bad || !path.data || !cordon_flow_path_valid(path.data))
		cordon_node_fail(c->in->doc, node, c->in->errors, NULL,
				 "the path of an output is relative, without '..', '.' and empty names: '%.200s'",
				 node->text);
	else if (cordon_streq(path.data, "context.md") || cordon_streq(path.data, "prompt.md"))
		refuse(c, node, "choose another name", "cordon itself writes the file of this name");
}

static void check_files(const struct checking *c)
{
	if (!c->refs->files)
		return;
	for (const struct cordon_node *node = c->refs->files->first; node; node = node->next) {
		const struct cordon_flow_output *output = cordon_flow_output(c->step, node->key->text);

		if (!output) {
			cordon_node_fail(c->in->doc, node->key, c->in->errors, "add it to 'outputs'",
					 "outputs has no key '%.80s'", node->key->text);
			continue;
		}
		if (!cordon_reader_text(c->in, node, "the path of an output"))
			continue;
		check_file(c, node);
		for (size_t i = 0; i < c->step->n_outputs; i++)
			if (c->step->outputs[i].file && cordon_streq(c->step->outputs[i].file, node->text))
				refuse(c, node, NULL, "two outputs have the same path");
		c->step->outputs[output - c->step->outputs].file = node->text;
	}
}

static void check_outputs(const struct checking *c)
{
	const struct cordon_flow_output *decision = cordon_flow_output(c->step, "decision");

	if (c->step->type == CORDON_FLOW_HUMAN_REVIEW) {
		if (c->step->n_outputs || c->refs->files)
			refuse(c, c->step->node, "leave outputs out: they are 'decision' and 'feedback'",
			       "a human_review has no outputs of its own");
		return;
	}
	check_files(c);
	if (c->step->type == CORDON_FLOW_REVIEW && (!decision || !decision->file))
		c->step->envelope = true;
	if (decision && decision->optional && c->step->type == CORDON_FLOW_REVIEW)
		refuse(c, c->step->node, "write 'decision' without the question mark",
		       "the decision of a review can't be optional");
	for (size_t i = 0; i < c->step->n_outputs; i++) {
		if (c->step->outputs[i].file)
			continue;
		c->step->envelope = true;
		if (c->refs->wants_files)
			cordon_node_fail(c->in->doc, c->step->node, c->in->errors, "add it to 'output_files'",
					 "prompt_type is file_output, and the output %s has no file",
					 c->step->outputs[i].key);
	}
	for (size_t i = 0; i < c->step->n_priority; i++)
		if (!cordon_flow_output(c->step, c->step->priority[i]))
			cordon_node_fail(c->in->doc, c->refs->priority, c->in->errors, NULL,
					 "final_output_priority names %s, which is not in 'outputs'",
					 c->step->priority[i]);
}

/* ---- templates ---- */

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (cordon_streq(word, words[i]))
			return true;
	return false;
}

/* "<step>.outputs.<key>" */
static bool output_exists(const struct checking *c, const char *rest)
{
	const char *dot = strstr(rest, ".outputs.");
	char id[CORDON_FLOW_ID_MAX + 1];
	const struct cordon_flow_step *step;
	size_t i;

	if (!dot || cordon_copy(id, sizeof(id), rest, (size_t)(dot - rest)) < 0)
		return false;
	i = cordon_workflow_step(c->workflow, id);
	if (i == SIZE_MAX)
		return false;
	step = &c->workflow->steps[i];
	dot += strlen(".outputs.");
	if (step->type == CORDON_FLOW_HUMAN_REVIEW)
		return cordon_streq(dot, "decision") || cordon_streq(dot, "feedback");
	return cordon_flow_output(step, dot) || (step->type == CORDON_FLOW_REVIEW && cordon_streq(dot, "decision"));
}

static bool value_exists(const struct checking *c, const char *name)
{
	static const char *const known[] = { "run_id",		 "step_id",
					     "attempt",		 "run_workspace",
					     "channel",		 "channel_profile_id",
					     "conversation_id",	 "output_schema_json",
					     "sender_id",	 "selector_id",
					     "output_paths_json" };
	const struct cordon_flow_output *output;

	if (strncmp(name, "inputs.", 7) == 0)
		return is_one_of(name + 7, c->workflow->inputs, c->workflow->n_inputs);
	if (strncmp(name, "state.", 6) == 0)
		return cordon_flow_id_valid(name + 6);
	if (strncmp(name, "steps.", 6) == 0)
		return output_exists(c, name + 6);
	if (strncmp(name, "workflow.output_paths.", 22) == 0)
		return (output = cordon_flow_output(c->step, name + 22)) && output->file;
	return strncmp(name, "workflow.", 9) == 0 && is_one_of(name + 9, known, CORDON_ARRAY_SIZE(known));
}

/* Judges one piece of a template; *err stays empty for a good one. */
static void check_piece(const struct checking *c, const struct cordon_template_piece *piece, bool bad,
			struct cordon_error *err)
{
	char name[256] = "";

	if (bad)
		cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "{{ without }} in the prompt of %s", name_of(c));
	else if (cordon_copy(name, sizeof(name), piece->text, piece->n) < 0 || !value_exists(c, name))
		cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "the prompt of %s has no value {{%.*s}}", name_of(c),
			    (int)(piece->n > 80 ? 80 : piece->n), piece->text);
	if (err->code && strncmp(name, "inputs.", 7) == 0)
		cordon_error_hint(err, "add '%.64s' to 'inputs' of the workflow", name + 7);
	else if (err->code)
		cordon_error_hint(err, "inputs.NAME, steps.STEP.outputs.KEY, state.NAME and workflow.NAME can be used; "
				       "see cordon-workflow(1)");
}

static void check_template(const struct checking *c, const struct cordon_node *node, const char *text)
{
	struct cordon_template_piece piece;
	size_t at = 0;
	bool bad;

	while (cordon_template_next(text, strlen(text), &at, &piece, &bad)) {
		struct cordon_error err = { 0 };

		if (piece.is_name)
			check_piece(c, &piece, bad, &err);
		if (err.code)
			(void)cordon_reader_refuse(c->in, node, &err, piece.at);
	}
}

void cordon_workflow_check_file(struct cordon_workflow *workflow, struct cordon_flow_step *step, const char *path,
				const char *text, struct cordon_errors *errors)
{
	struct checking c = { .workflow = workflow, .step = step };
	struct cordon_template_piece piece;
	size_t at = 0, line = 1, column = 1, done = 0;
	bool bad;

	while (cordon_template_next(text, strlen(text), &at, &piece, &bad)) {
		struct cordon_error err = { 0 };

		for (; done < piece.at; done++) {
			column = text[done] == '\n' ? 1 : column + (((unsigned char)text[done] & 0xc0) != 0x80);
			line += text[done] == '\n';
		}
		if (piece.is_name)
			check_piece(&c, &piece, bad, &err);
		if (err.code)
			cordon_errors_add(errors, &err, path, line, column);
	}
}

/* ---- all of it ---- */

static void check_step(const struct checking *c)
{
	static const char *const required[] = { "id", "type", "agent", "prompt" };
	const struct cordon_node *prompt = cordon_node_get(c->step->node, "prompt");

	for (size_t i = 0; c->step->node->type == CORDON_NODE_MAPPING && i < CORDON_ARRAY_SIZE(required); i++)
		if (!cordon_node_get(c->step->node, required[i]) && (i < 2 || c->step->type != CORDON_FLOW_HUMAN_REVIEW))
			cordon_node_fail(c->in->doc, c->step->node, c->in->errors, NULL, "the step %s has no '%s'",
					 name_of(c), required[i]);
	check_next(c);
	check_outputs(c);
	if (c->step->prompt && !c->step->prompt_file && prompt)
		check_template(c, prompt, c->step->prompt);
}

int cordon_workflow_check(const struct cordon_reader *reader, struct cordon_workflow *workflow,
			  const struct cordon_flow_refs *refs)
{
	for (size_t i = 0; i < workflow->n_steps; i++) {
		struct checking c = { .in = reader, .workflow = workflow, .step = &workflow->steps[i], .refs = &refs[i] };

		for (size_t k = 0; c.step->id && k < i; k++)
			if (workflow->steps[k].id && cordon_streq(workflow->steps[k].id, c.step->id))
				cordon_node_fail(reader->doc, cordon_node_get(c.step->node, "id"), reader->errors, NULL,
						 "there is a step %s already, at line %u", c.step->id,
						 workflow->steps[k].node->line);
		check_step(&c);
		if (check_needs(&c) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- what looks like a mistake ---- */

static void reach(const struct cordon_workflow *workflow, size_t i, bool *reached)
{
	size_t todo[3 * CORDON_FLOW_STEPS_MAX + 1] = { i }, n = 1;

	while (n) {
		const struct cordon_flow_step *step;
		size_t at = todo[--n];

		if (at >= workflow->n_steps || reached[at])
			continue;
		reached[at] = true;
		step = &workflow->steps[at];
		todo[n++] = step->next;
		todo[n++] = step->on_approve;
		todo[n++] = step->on_reject;
	}
}

void cordon_workflow_notices(const struct cordon_document *doc, const struct cordon_workflow *workflow,
			     void (*tell)(void *data, const char *where, const char *text), void *data)
{
	bool reached[CORDON_FLOW_STEPS_MAX] = { false };

	if (workflow->n_steps)
		reach(workflow, 0, reached);
	for (size_t i = 0; i < workflow->n_steps; i++) {
		char where[CORDON_PATH_MAX + 64], text[256];

		if (reached[i])
			continue;
		snprintf(where, sizeof(where), "%s:%u:%u", doc->name, workflow->steps[i].node->line,
			 workflow->steps[i].node->column);
		snprintf(text, sizeof(text), "nothing leads to the step %s: it never runs", workflow->steps[i].id);
		tell(data, where, text);
	}
}
