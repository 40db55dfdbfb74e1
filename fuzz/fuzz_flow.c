/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what the engine of workflows reads: the first byte chooses answers of agents, templates, or journals of a run. */
#include <assert.h>
#include <stdlib.h>

#include "flow/envelope.h"
#include "flow/journal.h"
#include "flow/progress.h"
#include "flow/template.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define VALUE "{{inputs.a}}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An envelope that was found is an object with the token, and the answer has the token in it. */
static void check_answer(const char *text, size_t size)
{
	json_t *envelope = NULL;
	struct cordon_error err = { 0 };
	int r = cordon_envelope_find(text, size, TOKEN, &envelope, &err);

	assert(r == 0 || (!envelope && err.message[0]));
	if (envelope) {
		const char *token = json_string_value(json_object_get(envelope, "token"));

		assert(token && cordon_streq(token, TOKEN));
	}
	json_decref(envelope);
}

struct seen {
	size_t values;
};

static int value(void *data, const char *name, size_t n, struct cordon_buf *out)
{
	((struct seen *)data)->values++;
	assert(!memmem(name, n, "}}", 2) && (!n || (name[0] != ' ' && name[n - 1] != ' ')));
	return n > 40 ? -ENOENT : cordon_buf_adds(out, VALUE);
}

/* The pieces cover the text without a gap, and each name became the value once, braces and all. */
static void check_template(const char *bytes, size_t size)
{
	struct cordon_buf text autobuf = CORDON_BUF(1 << 20);
	struct cordon_buf out autobuf = CORDON_BUF(1 << 22);
	struct cordon_template_piece piece;
	struct seen seen = { 0 };
	size_t at = 0, literal = 0, names = 0, next = 0;
	bool bad = false;

	if (cordon_buf_add(&text, bytes, strnlen(bytes, size)) < 0 || !text.data)
		return;
	while (cordon_template_next(text.data, text.len, &at, &piece, &bad)) {
		assert(piece.at == next && at > next && at <= text.len);
		next = at;
		literal += piece.is_name ? 0 : piece.n;
		names += piece.is_name;
		if (bad)
			break;
	}
	assert(bad || at == text.len);
	if (cordon_template_expand(text.data, value, &seen, &out, NULL) == 0)
		assert(!bad && seen.values == names && out.len == literal + names * strlen(VALUE));
}

/* Any journal leads to a state, and the state to an end or to a step that there is. */
static void check_journal(const char *text, size_t size)
{
	static const char definition[] =
		"{\"id\":\"w\",\"version\":1,\"steps\":["
		"{\"id\":\"a\",\"type\":\"agent_task\",\"agent\":\"x\",\"prompt\":\"p\",\"next\":\"b\"},"
		"{\"id\":\"b\",\"type\":\"agent_review\",\"agent\":\"x\",\"prompt\":\"p\",\"on_approve\":\"c\",\"on_reject\":\"a\"},"
		"{\"id\":\"c\",\"type\":\"human_review\",\"prompt\":\"p\",\"needs\":[\"a\"]}]}";
	struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	struct cordon_flow_progress progress;
	json_t *events = NULL, *parsed = json_loads(definition, 0, NULL);
	const char *reason;

	if (!parsed || cordon_workflow_parse(parsed, &run.doc, &run.workflow, NULL) < 0)
		abort();
	run.max_iterations = 12;
	run.run_timeout_ms = 1000;
	if (cordon_journal_parse(text, size, &events, NULL, NULL) == 0) {
		cordon_flow_progress_init(&progress, &run, events);
		assert(progress.state < CORDON_FLOW__MAX && cordon_flow_state_name(progress.state));
		assert(progress.at == CORDON_FLOW_END || progress.at < run.workflow->n_steps);
		reason = cordon_flow_must_end(&progress, &run);
		assert(reason || progress.at < run.workflow->n_steps);
		cordon_flow_progress_done(&progress);
	}
	json_decref(events);
	json_decref(parsed);
	cordon_document_free(run.doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(const char *, size_t) = { check_answer, check_template, check_journal };

	if (size > 0)
		checks[data[0] % CORDON_ARRAY_SIZE(checks)]((const char *)data + 1, size - 1);
	return 0;
}
