/* SPDX-License-Identifier: Apache-2.0 */
/* cordon policy test: asks a table of questions about a policy, and compares the answers with the expected ones. */
#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/policy_live.h"
#include "cli/recipe_options.h"
#include "policy/asker.h"

enum { KEY_FORMAT, KEY_LIVE };

static const struct cordon_option options[] = {
	CORDON_RECIPE_OPTIONS(CORDON_RECIPE_OF_QUESTIONS),
	{ "format", 0, CORDON_ARG_CHOICE, "text|tap|junit", "how the answers are printed (default: text)", KEY_FORMAT },
	{ "live", 0, CORDON_ARG_NONE, NULL, "ask each question in a real sandbox, too, which changes nothing", KEY_LIVE },
	{ 0 },
};

struct args {
	struct cordon_recipe recipe;
	const char *format;
	bool live;
};

/* What one question got. */
struct answer {
	const struct cordon_question *question;
	cordon_verdict verdict;
	char *why; /* one sentence, escaped: what decided, and of a failure what is wrong */
	struct cordon_live_answer live;
	bool ok;
};

struct answers {
	struct answer *items;
	size_t n, failed, unasked;
	bool live;
};

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct args *args = data;

	if (cordon_recipe_owns(key))
		return cordon_cli_set(&args->recipe, key, arg, err);
	if (key == KEY_FORMAT)
		args->format = arg;
	else
		args->live = true;
	return 0;
}

static void answers_done(struct answers *answers)
{
	for (size_t i = 0; i < answers->n; i++)
		free(answers->items[i].why);
	free(answers->items);
}

/* Says what a sandbox did, if that is not what was expected. */
static int judge_live(struct answer *answer, struct cordon_buf *why)
{
	bool refused = answer->question->expected == CORDON_DENY;

	if (answer->live.state == CORDON_LIVE_NOT_ASKED)
		return 0;
	if (answer->live.state == (refused ? CORDON_LIVE_REFUSED : CORDON_LIVE_ALLOWED))
		return 0;
	answer->ok = false;
	return cordon_buf_addf(why, "%s%s", why->len ? "; " : "",
			       answer->live.state == CORDON_LIVE_ALLOWED   ? "a sandbox lets it through"
			       : answer->live.state == CORDON_LIVE_REFUSED ? answer->question->connect
										     ? "a sandbox does not reach it"
										     : "a sandbox refuses it"
									   : "a sandbox gave no answer");
}

static int ask(const struct cordon_policy *policy, const struct cordon_question *question, bool live,
	       struct answer *answer, struct cordon_error *err)
{
	struct cordon_buf text autobuf = CORDON_BUF(4u << 20);
	autowhy struct cordon_why why;
	int r = cordon_policy_why(policy, question->connect ? "connect" : cordon_op_name(question->op),
				  question->subject, &why, err);

	if (r < 0)
		return r;
	answer->question = question;
	answer->verdict = why.asker.decision.verdict;
	answer->ok = answer->verdict == question->expected;
	if (!answer->ok)
		r = cordon_buf_addf(&text, "the policy says %s: %s", cordon_verdict_name(answer->verdict),
				    why.because.data ? why.because.data : "");
	if (r == 0 && live)
		r = judge_live(answer, &text);
	if (r < 0 || !(answer->why = strdup(text.data ? text.data : "")))
		return cordon_fail_errno(err, -ENOMEM, "cannot answer");
	return 0;
}

static int ask_all(struct args *args, const struct cordon_questions *questions, struct answers *ret,
		   struct cordon_error *err)
{
	autofree struct cordon_live_answer *live = calloc(questions->n + 1, sizeof(*live));
	int r = 0;

	ret->items = calloc(questions->n + 1, sizeof(*ret->items));
	ret->live = args->live;
	if (!live || !ret->items)
		return cordon_fail_errno(err, -ENOMEM, "cannot answer");
	if (args->live)
		r = cordon_live_ask(&args->recipe, questions, live, err);
	for (size_t i = 0; r == 0 && i < questions->n; i++) {
		struct answer *answer = &ret->items[ret->n];

		answer->live = live[i];
		r = ask(args->recipe.policy, &questions->items[i], args->live, answer, err);
		ret->n += r == 0;
		ret->failed += r == 0 && !answer->ok;
		ret->unasked += args->live && live[i].why_not;
	}
	return r;
}

/* ---- text ---- */

static int add_text(struct cordon_buf *out, const struct answers *answers, bool quiet)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < answers->n; i++) {
		const struct answer *a = &answers->items[i];

		if (quiet && a->ok)
			continue;
		r = cordon_buf_adds(out, a->ok ? "ok    " : "FAIL  ");
		r = r < 0 ? r : cordon_text_escape(out, a->question->text, strlen(a->question->text));
		if (r == 0 && !a->ok) {
			r = cordon_buf_adds(out, "\n      ");
			r = r < 0 ? r : cordon_text_escape(out, a->question->where, strlen(a->question->where));
			r = r < 0 ? r : cordon_buf_addf(out, ": %s", a->why);
		}
		if (r == 0 && a->live.why_not)
			r = cordon_buf_addf(out, "\n      not asked in a sandbox: %s", a->live.why_not);
		r = r < 0 ? r : cordon_buf_adds(out, "\n");
	}
	if (r < 0 || quiet)
		return r;
	r = cordon_buf_addf(out, "%zu questions, %zu not as expected", answers->n, answers->failed);
	if (r == 0 && answers->live)
		r = cordon_buf_addf(out, ", %zu not asked in a sandbox", answers->unasked);
	return r < 0 ? r : cordon_buf_adds(out, "\n");
}

/* ---- TAP ---- */

static int add_json_text(struct cordon_buf *out, const char *text)
{
	json_auto_t *value = cordon_cli_json_text(text);
	autofree char *written = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

	return written ? cordon_buf_adds(out, written) : -ENOMEM;
}

/* The description of a test: # would begin a directive. */
static int add_description(struct cordon_buf *out, const char *text)
{
	autobuf struct cordon_buf safe = CORDON_BUF(1u << 20);
	int r = cordon_text_escape(&safe, text, strlen(text));

	for (size_t i = 0; r == 0 && i < safe.len; i++) {
		if (safe.data[i] == '#')
			r = cordon_buf_adds(out, "\\");
		r = r < 0 ? r : cordon_buf_add(out, safe.data + i, 1);
	}
	return r;
}

static int add_tap(struct cordon_buf *out, const struct answers *answers)
{
	int r = cordon_buf_addf(out, "TAP version 14\n1..%zu\n", answers->n);

	for (size_t i = 0; r == 0 && i < answers->n; i++) {
		const struct answer *a = &answers->items[i];

		r = cordon_buf_addf(out, "%s %zu - ", a->ok ? "ok" : "not ok", i + 1);
		r = r < 0 ? r : add_description(out, a->question->text);
		r = r < 0 ? r : cordon_buf_adds(out, "\n");
		if (r < 0 || (a->ok && !a->live.why_not))
			continue;
		r = cordon_buf_adds(out, "  ---\n  at: ");
		r = r < 0 ? r : add_json_text(out, a->question->where);
		r = r < 0 ? r : cordon_buf_adds(out, a->ok ? "\n  not_asked_live: " : "\n  message: ");
		r = r < 0 ? r : add_json_text(out, a->ok ? a->live.why_not : a->why);
		r = r < 0 ? r : cordon_buf_adds(out, "\n  ...\n");
	}
	return r;
}

/* ---- JUnit ---- */

/* Text in XML, also between quotation marks. */
static int add_xml(struct cordon_buf *out, const char *text)
{
	autobuf struct cordon_buf safe = CORDON_BUF(4u << 20);
	int r = cordon_text_escape(&safe, text, strlen(text));

	for (size_t i = 0; r == 0 && i < safe.len; i++) {
		char c = safe.data[i];
		const char *entity = c == '&'	? "&amp;"
				     : c == '<' ? "&lt;"
				     : c == '>' ? "&gt;"
				     : c == '"' ? "&quot;"
						: NULL;

		r = entity ? cordon_buf_adds(out, entity) : cordon_buf_add(out, &c, 1);
	}
	return r;
}

static int add_junit(struct cordon_buf *out, const struct answers *answers, const char *file)
{
	int r = cordon_buf_adds(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"");

	r = r < 0 ? r : add_xml(out, file);
	r = r < 0 ? r : cordon_buf_addf(out, "\" tests=\"%zu\" failures=\"%zu\">\n", answers->n, answers->failed);
	for (size_t i = 0; r == 0 && i < answers->n; i++) {
		const struct answer *a = &answers->items[i];

		r = cordon_buf_adds(out, "<testcase classname=\"cordon.policy\" name=\"");
		r = r < 0 ? r : add_xml(out, a->question->text);
		r = r < 0 ? r : cordon_buf_adds(out, "\"");
		if (r == 0 && !a->ok) {
			r = cordon_buf_adds(out, "><failure message=\"");
			r = r < 0 ? r : add_xml(out, a->question->where);
			r = r < 0 ? r : cordon_buf_adds(out, ": ");
			/* The sentence is escaped, and so its backslashes get a second one. */
			r = r < 0 ? r : add_xml(out, a->why);
			r = r < 0 ? r : cordon_buf_adds(out, "\"/></testcase>\n");
		} else if (r == 0) {
			r = cordon_buf_adds(out, "/>\n");
		}
	}
	return r < 0 ? r : cordon_buf_adds(out, "</testsuite>\n</testsuites>\n");
}

/* ---- JSON ---- */

static const char *live_name(cordon_live_state state)
{
	static const char *const names[] = { [CORDON_LIVE_NOT_ASKED] = "not asked",
					     [CORDON_LIVE_ALLOWED] = "allow",
					     [CORDON_LIVE_REFUSED] = "deny",
					     [CORDON_LIVE_NO_ANSWER] = "no answer" };

	return names[state];
}

static int print_json(const struct cordon_cli *cli, const struct answers *answers)
{
	json_t *list = json_array();

	for (size_t i = 0; i < answers->n; i++) {
		const struct answer *a = &answers->items[i];
		json_t *one = json_pack("{s:o, s:o, s:s, s:s, s:b, s:o}", "question",
					cordon_cli_json_text(a->question->text), "where",
					cordon_cli_json_text(a->question->where), "expected",
					cordon_verdict_name(a->question->expected), "decision",
					cordon_verdict_name(a->verdict), "ok", (int)a->ok, "why",
					cordon_cli_json_text(a->why));

		if (answers->live)
			json_object_set_new(one, "live", json_string(live_name(a->live.state)));
		if (a->live.why_not)
			json_object_set_new(one, "not_asked", json_string(a->live.why_not));
		json_array_append_new(list, one);
	}
	return cordon_cli_print_json(cli,
				     json_pack("{s:o, s:I}", "questions", list, "failed", (json_int_t)answers->failed));
}

static int print(const struct cordon_cli *cli, const struct args *args, const char *file, const struct answers *answers)
{
	autobuf struct cordon_buf out = CORDON_BUF(SIZE_MAX / 2);
	struct cordon_error err = { 0 };
	int r;

	if (cli->json)
		r = print_json(cli, answers);
	else if (args->format && cordon_streq(args->format, "tap"))
		r = add_tap(&out, answers);
	else if (args->format && cordon_streq(args->format, "junit"))
		r = add_junit(&out, answers, file);
	else
		r = add_text(&out, answers, cli->quiet);
	if (r < 0) {
		cordon_fail_errno(&err, r, "cannot print the answers");
		return cordon_cli_fail(cli, &err);
	}
	fwrite(out.data, 1, out.len, stdout);
	return r ? r : answers->failed ? CORDON_EXIT_NO : CORDON_EXIT_OK;
}

static int test_file(struct cordon_cli *cli, struct args *args, const char *file)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_questions questions CORDON_CLEANUP(cordon_questions_done) = { 0 };
	struct answers answers CORDON_CLEANUP(answers_done) = { 0 };
	struct cordon_error err = { 0 };
	struct cordon_live_way live;
	int r;

	if (cordon_questions_load(file, &questions, &errors) < 0)
		return cordon_cli_fail_all(cli, &errors);
	if (args->live && cordon_live_prepare(&live, &args->recipe, &err) < 0)
		return cordon_cli_fail(cli, &err);
	args->recipe.folder_mode = CORDON_MODE_PERMISSIVE;
	r = cordon_cli_compile(cli, &args->recipe, args->live ? CORDON_RECIPE_PLANS : CORDON_RECIPE_ASKS);
	if (r)
		return r;
	if (ask_all(args, &questions, &answers, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return print(cli, args, file, &answers);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct args args = { 0 };
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, &args, &first, &err);

	if (r != 0)
		r = r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	else if (first + 1 != argc)
		r = cordon_cli_usage(cli, "give one file with questions");
	else
		r = test_file(cli, &args, argv[first]);
	cordon_recipe_done(&args.recipe);
	return r;
}

const struct cordon_command cordon_cmd_policy_test = {
	.name = "policy test",
	.operands = "FILE",
	.summary = "ask a table of questions about a policy, and compare the answers",
	.details = "FILE is YAML or JSON: 'questions' is a list of texts such as 'allow write src/a.ts', 'deny read .env' or\n"
		   "'deny connect evil.example'. Takes the options of 'cordon check', and answers as a run with them would.\n"
		   "With --live one sandbox tries each of them, too, in a copy-on-write view that is thrown away.\n"
		   "\n"
		   "Exit status: 0 all answers are as expected, 1 one is not, 2 wrong usage.\n",
	.options = options,
	.run = run,
};
