/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine of workflows reads and writes: templates, answers of agents, the journal, and where a run stands by it. */
#include "unit.h"

#include "flow/envelope.h"
#include "flow/internal.h"
#include "flow/journal.h"
#include "flow/progress.h"
#include "flow/template.h"

/* ---- templates ---- */

static int value(void *data, const char *name, size_t n, struct cordon_buf *out)
{
	(void)data;
	if (n == 1 && *name == 'a')
		return cordon_buf_adds(out, "{{b}} }}");
	return n == 1 && *name == 'b' ? cordon_buf_adds(out, "B") : -ENOENT;
}

static void test_a_template_is_expanded_once_and_values_are_not_looked_at(void **state)
{
	static const struct {
		const char *text, *expanded; /* NULL: an error */
	} cases[] = {
		{ "", "" },
		{ "plain { } }} text", "plain { } }} text" },
		{ "{{a}}", "{{b}} }}" },
		{ "x{{ a }}{{b}}y", "x{{b}} }}By" },
		{ "{{\tb }}", "B" },
		{ "{{a", NULL },
		{ "{{c}}", NULL },
		{ "{{}}", NULL },
		{ "{{{{a}}}}", NULL },
		{ "{{a\n}}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		struct cordon_buf out autobuf = CORDON_BUF(1024);
		struct cordon_error err = { 0 };
		int r = cordon_template_expand(cases[i].text, value, NULL, &out, &err);

		assert_int_equal(r == 0, cases[i].expanded != NULL);
		if (r == 0)
			assert_string_equal(out.data ? out.data : "", cases[i].expanded);
		else
			assert_true(err.message[0]);
	}
}

static void test_a_template_can_not_grow_beyond_its_bound(void **state)
{
	struct cordon_buf out autobuf = CORDON_BUF(10);
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_template_expand("{{a}}{{a}}", value, NULL, &out, &err), -E2BIG);
	assert_int_equal(err.kind, CORDON_KIND_LIMIT);
}

/* ---- answers ---- */

#define TOKEN "00112233445566778899aabbccddeeff"
#define ENVELOPE(token, rest) "[workflow_result]{\"token\": \"" token "\"" rest "}[/workflow_result]"
#define IN_JSON "[workflow_result]{\\\"token\\\": \\\"" TOKEN "\\\", \\\"x\\\": \\\"1\\\"}[/workflow_result]"

static void test_an_answer_has_one_result_with_the_token(void **state)
{
	static const struct {
		const char *answer, *x; /* NULL: none; "!": an error */
	} cases[] = {
		{ "", NULL },
		{ "no result", NULL },
		{ "Done.\n" ENVELOPE(TOKEN, ", \"x\": \"1\"") "\n", "1" },
		{ ENVELOPE("ff112233445566778899aabbccddeeff", ", \"x\": \"1\""), NULL },
		{ "[workflow_result]{\"x\": \"1\"}[/workflow_result]", NULL },
		{ "[workflow_result]{\"token\": [\"" TOKEN "\"], \"x\": \"1\"}[/workflow_result]", NULL },
		{ "[workflow_result]{\"token\": \"" TOKEN "\", \"token\": \"" TOKEN "\"}[/workflow_result]", NULL },
		{ "[workflow_result]not JSON[/workflow_result]" ENVELOPE(TOKEN, ", \"x\": \"1\""), "1" },
		{ "[workflow_result] " ENVELOPE(TOKEN, ", \"x\": \"1\""), "1" },
		{ ENVELOPE(TOKEN, ", \"x\": \"1\"") ENVELOPE(TOKEN, ", \"x\": \"2\""), "!" },
		{ "[workflow_result]{\"token\": \"" TOKEN "\"}", NULL },
		/* In JSON lines only messages of the agent count. */
		{ "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"" IN_JSON "\"}}\n", "1" },
		{ "{\"type\":\"item.completed\",\"item\":{\"type\":\"command_execution\",\"text\":\"" IN_JSON "\"}}\n",
		  NULL },
		{ "{\"msg\":{\"type\":\"agent_message\",\"message\":\"" IN_JSON "\"}}\n", "1" },
		{ "{\"type\":\"result\",\"result\":\"" IN_JSON "\"}", "1" },
		{ "{\"type\":\"user\",\"result\":\"" IN_JSON "\"}\n\n{\"type\":\"result\",\"result\":\"no\"}\n", NULL },
		{ "{\"type\":\"result\",\"result\":{\"type\":\"result\",\"result\":\"" IN_JSON "\"}}\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		json_auto_t *envelope = NULL;
		struct cordon_error err = { 0 };
		int r = cordon_envelope_find(cases[i].answer, strlen(cases[i].answer), TOKEN, &envelope, &err);

		assert_int_equal(r < 0, cases[i].x && *cases[i].x == '!');
		if (r == 0 && cases[i].x)
			assert_string_equal(json_string_value(json_object_get(envelope, "x")), cases[i].x);
		else
			assert_null(envelope);
	}
}

/* ---- the journal ---- */

static int open_dir(void)
{
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void add(struct cordon_journal *journal, const char *what)
{
	json_auto_t *event = json_pack("{s:s}", "event", what);

	assert_int_equal(cordon_journal_add(journal, event, CORDON_JOURNAL_DURABLE, NULL), 0);
}

/* A writer that is killed leaves any part of its last line. */
static void test_a_journal_cut_at_any_byte_has_the_whole_lines_and_goes_on(void **state)
{
	autofd int dir = open_dir();
	struct cordon_journal journal = CORDON_JOURNAL_NONE;
	json_t *events = NULL;
	struct stat st;
	off_t first;

	(void)state;
	assert_int_equal(cordon_journal_read(dir, &events, NULL), 0);
	assert_int_equal(json_array_size(events), 0);
	json_decref(events);
	assert_int_equal(cordon_journal_open(dir, &journal, NULL, NULL), 0);
	add(&journal, "engine");
	assert_int_equal(fstat(journal.fd, &st), 0);
	first = st.st_size;
	add(&journal, "wait");
	assert_int_equal(fstat(journal.fd, &st), 0);
	cordon_journal_done(&journal);
	for (off_t size = st.st_size - 1; size >= first; size--) {
		assert_int_equal(truncate("journal", size), 0);
		assert_int_equal(cordon_journal_read(dir, &events, NULL), 0);
		assert_int_equal(json_array_size(events), 1);
		json_decref(events);
		assert_int_equal(cordon_journal_open(dir, &journal, &events, NULL), 0);
		assert_int_equal(json_array_size(events), 1);
		json_decref(events);
		add(&journal, "wait");
		cordon_journal_done(&journal);
		assert_int_equal(cordon_journal_read(dir, &events, NULL), 0);
		assert_int_equal(json_array_size(events), 2);
		assert_int_equal(json_integer_value(json_object_get(json_array_get(events, 1), "seq")), 2);
		json_decref(events);
	}
}

static void test_a_damaged_journal_is_refused_and_named(void **state)
{
	static const char *const bad[] = {
		"{\"seq\":2}\n",
		"{\"seq\":1}\n{\"seq\":1}\n",
		"[]\n",
		"\n",
		"{\"seq\":1}\nnonsense\n{\"seq\":2}\n",
		"{\"seq\":1,\"seq\":1}\n",
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(bad); i++) {
		struct cordon_error err = { 0 };
		json_t *events = NULL;

		assert_int_equal(cordon_journal_parse(bad[i], strlen(bad[i]), &events, NULL, &err), -EBADMSG);
		assert_null(events);
		assert_non_null(strstr(err.message, "damaged in line"));
	}
}

/* ---- where a run stands ---- */

static const char definition[] =
	"{\"id\":\"w\",\"version\":1,\"steps\":["
	"{\"id\":\"a\",\"type\":\"agent_task\",\"agent\":\"x\",\"prompt\":\"p\",\"next\":\"b\",\"limits\":{\"max_retries\":1}},"
	"{\"id\":\"b\",\"type\":\"agent_review\",\"agent\":\"x\",\"prompt\":\"p\",\"on_reject\":\"a\"}]}";

static void stands(const char *journal, cordon_flow_state state, bool open, const char *view, const char *reason)
{
	struct cordon_flow_run run = CORDON_FLOW_RUN_NONE;
	json_auto_t *parsed = json_loads(definition, 0, NULL);
	json_auto_t *events = NULL;
	struct cordon_flow_progress progress;
	const char *end;

	assert_int_equal(cordon_workflow_parse(parsed, &run.doc, &run.workflow, NULL), 0);
	run.max_iterations = 4;
	run.run_timeout_ms = 1000;
	assert_int_equal(cordon_journal_parse(journal, strlen(journal), &events, NULL, NULL), 0);
	cordon_flow_progress_init(&progress, &run, events);
	assert_int_equal(progress.state, state);
	assert_int_equal(progress.open, open);
	if (view)
		assert_string_equal(progress.view, view);
	else
		assert_null(progress.view);
	end = cordon_flow_must_end(&progress, &run);
	assert_int_equal(end == NULL, reason == NULL);
	if (reason)
		assert_string_equal(end, reason);
	cordon_flow_progress_done(&progress);
	cordon_document_free(run.doc);
}

#define BEGIN(seq, n, step)                                                                                            \
	"{\"seq\":" seq ",\"event\":\"attempt\",\"n\":" n ",\"step\":\"" step "\",\"attempt\":" n ",\"view\":\"v" n    \
	"\"}\n"
#define END(seq, rest) "{\"seq\":" seq ",\"event\":\"end\",\"duration_ms\":10," rest "}\n"
#define DONE "\"result\":\"complete\",\"dir\":\"1:1\",\"outputs\":{}"

static void test_the_journal_alone_says_where_a_run_stands(void **state)
{
	(void)state;
	stands("", CORDON_FLOW_QUEUED, false, NULL, NULL);
	stands(BEGIN("1", "1", "a"), CORDON_FLOW_RUNNING, true, NULL, NULL);
	stands(BEGIN("1", "1", "a") END("2", DONE ",\"view\":\"v1\""), CORDON_FLOW_RUNNING, false, "v1", NULL);
	stands(BEGIN("1", "1", "a") END("2", DONE ",\"view\":\"v1\"") BEGIN("3", "2", "b") END("4", DONE),
	       CORDON_FLOW_RUNNING, false, NULL, "");
	stands(BEGIN("1", "1", "a") END("2", "\"result\":\"failed\",\"message\":\"no\""), CORDON_FLOW_RUNNING, false,
	       NULL, NULL);
	stands(BEGIN("1", "1", "a") END("2", "\"result\":\"failed\",\"message\":\"no\"") BEGIN("3", "2", "a")
		       END("4", "\"result\":\"failed\",\"message\":\"never\""),
	       CORDON_FLOW_RUNNING, false, NULL, "never");
	stands(BEGIN("1", "1", "a") END("2", "\"result\":\"failed\",\"message\":\"revoked\""), CORDON_FLOW_RUNNING,
	       false, NULL, "revoked");
	stands(BEGIN("1", "1",
		     "a") "{\"seq\":2,\"event\":\"end\",\"duration_ms\":1000,\"result\":\"complete\",\"outputs\":{}}\n",
	       CORDON_FLOW_RUNNING, false, NULL, "timeout");
	/* An end without a beginning, a step that there is not, and an answer that nobody asked for change nothing. */
	stands(END("1", DONE) BEGIN("2", "1",
				    "zzz") "{\"seq\":3,\"event\":\"answer\",\"outputs\":{\"decision\":\"approve\"}}\n",
	       CORDON_FLOW_QUEUED, false, NULL, NULL);
	stands("{\"seq\":1,\"event\":\"done\",\"state\":\"canceled\",\"reason\":\"canceled\"}\n", CORDON_FLOW_CANCELED,
	       false, NULL, NULL);
}

static void test_an_agent_without_a_model_keeps_every_other_word(void **state)
{
	char *command[] = { "agent", "run", "--model", "{model}", "--file", "{prompt_file}", NULL };
	const struct cordon_provider provider = { .command = command };
	static const char *const with[] = { "agent", "run", "--model", "m", "--file", "p" };
	static const char *const without[] = { "agent", "run", "--file", "p" };

	(void)state;
	for (int model = 0; model < 2; model++) {
		const char *const *expected = model ? with : without;
		size_t n = model ? CORDON_ARRAY_SIZE(with) : CORDON_ARRAY_SIZE(without);
		bool file = false;
		char **argv = cordon_flow_argv(&provider, model ? "m" : NULL, "p", &file);

		assert_non_null(argv);
		assert_true(file);
		for (size_t i = 0; i < n; i++)
			assert_string_equal(argv[i], expected[i]);
		assert_null(argv[n]);
		cordon_flow_argv_free(argv);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_template_is_expanded_once_and_values_are_not_looked_at),
		cmocka_unit_test(test_a_template_can_not_grow_beyond_its_bound),
		cmocka_unit_test(test_an_answer_has_one_result_with_the_token),
		cmocka_unit_test_setup_teardown(test_a_journal_cut_at_any_byte_has_the_whole_lines_and_goes_on,
						unit_setup, unit_teardown),
		cmocka_unit_test(test_a_damaged_journal_is_refused_and_named),
		cmocka_unit_test(test_the_journal_alone_says_where_a_run_stands),
		cmocka_unit_test(test_an_agent_without_a_model_keeps_every_other_word),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
