/* SPDX-License-Identifier: Apache-2.0 */
/* What the events of a loop's journal mean: one reader for the status, the board, gc and the loop that goes on. */
#include "unit.h"

#include "base/json.h"
#include "loop/progress.h"

#define BEGIN "{'event':'begin','time':'t0','crew':'C','boot':'B','workers':2,'prds':['p']}"
#define CALL(n, id)                                                                                                    \
	"{'event':'call','time':'t1','n':" n ",'prd':'p','story':'" id "','attempt':1,'view':'v" n                     \
	"','log':'l','job':0}"
#define ENDED(what, n, id, more)                                                                                       \
	"{'event':'" what "','time':'t2','n':" n ",'prd':'p','story':'" id "','view':'v" n "','result':"               \
	"{'violations':2,'duration_ms':5,'exit_code':0}" more "}"

static struct cordon_loop_progress reduce(const char *lines)
{
	struct cordon_loop_progress progress = { 0 };
	autofree char *text = strdup(lines);
	json_auto_t *events = NULL;

	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	events = json_loads(text, 0, NULL);
	assert_non_null(events);
	assert_int_equal(cordon_loop_progress_read(events, &progress, NULL), 0);
	return progress;
}

static void assert_state(const struct cordon_loop_progress *progress, const char *id, const char *state)
{
	assert_string_equal(cordon_json_text(cordon_loop_progress_story(progress, "p", id), "state"), state);
}

static json_int_t number(const struct cordon_loop_progress *progress, const char *id, const char *key)
{
	return cordon_json_integer(cordon_loop_progress_story(progress, "p", id), key);
}

static void a_journal_without_events_is_no_loop(void **state)
{
	autoprogress struct cordon_loop_progress progress = reduce("[]");

	(void)state;
	assert_null(progress.begin);
	assert_false(progress.done);
	assert_null(cordon_loop_progress_story(&progress, "p", "A"));
}

static void a_call_works_is_checked_and_ends(void **state)
{
	autoprogress struct cordon_loop_progress working = reduce("[" BEGIN "," CALL("1", "A") "]");
	autoprogress struct cordon_loop_progress failed = reduce(
		"[" BEGIN "," CALL("1", "A") "," ENDED("failed", "1", "A",
						       ",'counts':true,'note':'why\\nmore'") "," CALL("2", "A") "]");
	const json_t *story = cordon_loop_progress_story(&failed, "p", "A");

	(void)state;
	assert_state(&working, "A", "working");
	assert_int_equal(json_object_size(working.workers), 1);
	assert_string_equal(cordon_json_text(working.views, "1"), "v1");
	assert_string_equal(working.crew, "C");
	/* It was called again, and knows what went wrong before. */
	assert_state(&failed, "A", "working");
	assert_int_equal(number(&failed, "A", "attempts"), 2);
	assert_int_equal(number(&failed, "A", "failures"), 1);
	assert_int_equal(number(&failed, "A", "duration_ms"), 5);
	assert_string_equal(cordon_json_text(story, "reason"), "why");
	assert_int_equal(json_integer_value(json_array_get(json_array_get(json_object_get(story, "notes"), 0), 0)), 1);
	assert_int_equal(failed.violations, 2);
	assert_int_equal(failed.iterations, 2);
	assert_int_equal(failed.n, 2);
	assert_int_equal(json_array_size(json_object_get(story, "calls")), 2);
	assert_false(cordon_loop_call_is_open(json_array_get(json_object_get(story, "calls"), 0)));
	assert_true(cordon_loop_call_is_open(json_array_get(json_object_get(story, "calls"), 1)));
}

static void a_result_that_is_accepted_lands_or_goes_back(void **state)
{
#define ACCEPTED "[" BEGIN "," CALL("1", "A") "," ENDED("accepted", "1", "A", "")
#define COMMITTED ",{'event':'committed','time':'t3','parent':'P','commits':{'1':'c1'}}"
	autoprogress struct cordon_loop_progress accepted = reduce(ACCEPTED COMMITTED
								   ",{'event':'landing','view':'L','calls':[1]}]");
	autoprogress struct cordon_loop_progress back = reduce(ACCEPTED COMMITTED
							       "," ENDED("failed", "1", "A", ",'counts':false") "]");
	autoprogress struct cordon_loop_progress passed = reduce(
		ACCEPTED COMMITTED
		",{'event':'passed','time':'t4','calls':[1],'stories':[{'commit':'c1'}]},{'event':'done','time':'t5'}]");

	(void)state;
	assert_state(&accepted, "A", "accepted");
	assert_string_equal(accepted.landing, "L");
	assert_string_equal(accepted.parent, "P");
	assert_string_equal(cordon_json_text(json_array_get(accepted.accepted, 0), "commit"), "c1");
	assert_int_equal(json_object_size(accepted.views), 0);
	assert_false(accepted.done);
	/* What was made of it is of no use any more, and its time counts once. */
	assert_state(&back, "A", "waiting");
	assert_int_equal(json_array_size(back.accepted), 0);
	assert_null(back.parent);
	assert_int_equal(number(&back, "A", "duration_ms"), 5);
	assert_int_equal(number(&back, "A", "failures"), 0);
	assert_state(&passed, "A", "passed");
	assert_true(passed.done && !passed.landing && !passed.parent && !json_array_size(passed.accepted));
	assert_string_equal(cordon_json_text(cordon_loop_progress_story(&passed, "p", "A"), "commit"), "c1");
	assert_string_equal(passed.last_time, "t5");
}

static void calls_of_a_process_that_was_killed_have_ended_and_their_views_are_known(void **state)
{
	autoprogress struct cordon_loop_progress progress = reduce("[" BEGIN "," CALL("1", "A") "," BEGIN
												"," CALL("2", "B") "]");
	const json_t *call = json_array_get(json_object_get(cordon_loop_progress_story(&progress, "p", "A"), "calls"),
					    0);

	(void)state;
	assert_string_equal(cordon_json_text(call, "state"), "interrupted");
	assert_int_equal(json_object_size(progress.workers), 1);
	assert_int_equal(json_object_size(progress.views), 2);
	assert_int_equal(progress.iterations, 1);
}

static void a_story_that_is_parked_gets_its_attempts_back(void **state)
{
#define PARKED                                                                                                         \
	"[" BEGIN                                                                                                      \
	"," CALL("1",                                                                                                  \
		 "A") "," ENDED("failed", "1", "A",                                                                    \
				",'counts':true,'note':'n'") ",{'event':'parked','prd':'p','story':'A','reason':'r'}"
	autoprogress struct cordon_loop_progress parked = reduce(PARKED "]");
	autoprogress struct cordon_loop_progress retried = reduce(PARKED
								  ",{'event':'retry','prd':'p','story':'A','uid':0}]");

	(void)state;
	assert_state(&parked, "A", "parked");
	assert_true(cordon_json_true(cordon_loop_progress_story(&parked, "p", "A"), "parked"));
	assert_state(&retried, "A", "waiting");
	assert_int_equal(number(&retried, "A", "failures"), 0);
	assert_int_equal(number(&retried, "A", "attempts"), 1);
	assert_false(cordon_json_true(cordon_loop_progress_story(&retried, "p", "A"), "parked"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_journal_without_events_is_no_loop),
		cmocka_unit_test(a_call_works_is_checked_and_ends),
		cmocka_unit_test(a_result_that_is_accepted_lands_or_goes_back),
		cmocka_unit_test(calls_of_a_process_that_was_killed_have_ended_and_their_views_are_known),
		cmocka_unit_test(a_story_that_is_parked_gets_its_attempts_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
