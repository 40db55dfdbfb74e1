/* SPDX-License-Identifier: Apache-2.0 */
/* The records of approvals: the first answer wins, an approval is used once, and no client can fill the store. */
#include <sys/wait.h>

#include "approval/internal.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/time.h"
#include "state/kinds.h"
#include "unit.h"

static struct cordon_store store = CORDON_STORE_NONE;
static json_t *args;

static int store_setup(void **state)
{
	char home[2 * UNIT_PATH];

	if (unit_setup(state) < 0)
		return -1;
	snprintf(home, sizeof(home), "%s/home", unit_dir);
	args = json_pack("{s:s}", "project_id", "x");
	return setenv("CORDON_HOME", home, 1) == 0 && cordon_store_open(&store, NULL) == 0 ? 0 : -1;
}

static int store_teardown(void **state)
{
	json_decref(args);
	cordon_store_done(&store);
	return unit_teardown(state);
}

#define store_test(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

static struct cordon_approval_ask question(void)
{
	return (struct cordon_approval_ask){ .principal = "token:1",
					     .client = "a client",
					     .method = "tools/call",
					     .tool = "project_delete",
					     .args = args,
					     .question = "Delete it?" };
}

/* Asks and returns the id. */
static const char *ask(const struct cordon_approval_ask *wanted, bool new)
{
	static char id[CORDON_ID_SIZE];
	autoapproval struct cordon_approval_record record = { 0 };
	struct cordon_error err = { 0 };
	bool is_new;

	if (cordon_approval_ask(&store, wanted, &record, &is_new, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(is_new, new);
	memcpy(id, record.id, sizeof(id));
	return id;
}

static int answer(const char *id, bool approve, struct cordon_error *err)
{
	const struct cordon_approval_answer given = { .approve = approve, .on = CORDON_APPROVAL_BY_PAGE, .by = "ann" };

	return cordon_approval_answer(&store, id, &given, NULL, err);
}

static cordon_approval_state state_of(const char *id)
{
	autoapproval struct cordon_approval_record record = { 0 };

	assert_int_equal(cordon_approval_get(&store, id, &record, NULL), 0);
	return record.state;
}

/* Rewrites a time of a record, as if it were older. */
static void set_time(const char *id, const char *key, int64_t ms)
{
	char file[CORDON_ID_SIZE + 32], time[CORDON_TIME_SIZE];
	json_auto_t *record = NULL;

	snprintf(file, sizeof(file), "approvals/%s.json", id);
	cordon_time_format(ms, time);
	assert_int_equal(cordon_record_read(store.home.state_fd, file, &record, NULL), 0);
	json_object_set_new(record, key, json_string(time));
	assert_int_equal(cordon_record_write(store.home.state_fd, file, record, NULL), 0);
}

static void the_first_answer_wins_and_counts_once(void **state)
{
	struct cordon_approval_ask wanted = question();
	autofree char *id = strdup(ask(&wanted, true));
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_approval_use(&store, id, &wanted, NULL, &err), -EAGAIN);
	assert_string_equal(ask(&wanted, false), id); /* the same call asks the same question */
	assert_int_equal(answer(id, true, &err), 0);
	assert_int_equal(answer(id, false, &err), -EALREADY);
	assert_int_equal(err.kind, CORDON_KIND_CONFLICT);
	assert_non_null(strstr(err.message, "approved already, by ann (page)"));
	assert_int_equal(state_of(id), CORDON_APPROVAL_APPROVED);
	assert_string_equal(ask(&wanted, false), id);
	assert_int_equal(cordon_approval_use(&store, id, &wanted, NULL, &err), 0);
	assert_int_equal(state_of(id), CORDON_APPROVAL_DONE);
	assert_int_equal(cordon_approval_use(&store, id, &wanted, NULL, &err), -EPERM);
	assert_int_equal(answer(id, true, &err), -EALREADY);
	assert_string_not_equal(ask(&wanted, true), id); /* the next call is another question */
}

static void a_denial_stands_until_it_expires(void **state)
{
	struct cordon_approval_ask wanted = question();
	autofree char *id = strdup(ask(&wanted, true));
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(answer(id, false, &err), 0);
	assert_int_equal(answer(id, true, &err), -EALREADY);
	assert_string_equal(ask(&wanted, false), id);
	assert_int_equal(cordon_approval_use(&store, id, &wanted, NULL, &err), -EPERM);
	assert_non_null(strstr(err.message, "ann denied this"));
	wanted.again = true; /* a client that can ask its person does so */
	assert_string_not_equal(ask(&wanted, true), id);
	wanted.again = false;
	set_time(id, "created_at", cordon_time_now() + 1000); /* now it is the newest of the two */
	assert_string_equal(ask(&wanted, false), id);
	set_time(id, "expires_at", cordon_time_now() - 1);
	ask(&wanted, true);
}

static void what_nobody_answers_or_uses_expires(void **state)
{
	struct cordon_approval_ask wanted = question();
	autofree char *id = strdup(ask(&wanted, true));
	struct cordon_error err = { 0 };

	(void)state;
	set_time(id, "expires_at", cordon_time_now() - 1);
	assert_int_equal(state_of(id), CORDON_APPROVAL_EXPIRED);
	assert_int_equal(answer(id, true, &err), -EALREADY);
	assert_non_null(strstr(err.message, "expired"));
	free(id);
	id = strdup(ask(&wanted, true));
	assert_int_equal(answer(id, true, &err), 0);
	set_time(id, "expires_at", cordon_time_now() - 1);
	assert_int_equal(cordon_approval_use(&store, id, &wanted, NULL, &err), -EPERM);
	assert_non_null(strstr(err.message, "expired"));
}

static void an_approval_is_about_one_call_only(void **state)
{
	struct cordon_approval_ask wanted = question(), other[5] = { wanted, wanted, wanted, wanted, wanted };
	json_auto_t *more = json_pack("{s:s, s:i}", "project_id", "x", "more", 1);
	autofree char *id = strdup(ask(&wanted, true));
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(answer(id, true, &err), 0);
	other[0].principal = "token:2";
	other[1].method = "tools/other";
	other[2].tool = "workspace_delete";
	other[3].args = more;
	other[4].question = "Delete another one?";
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(other); i++) {
		assert_int_equal(cordon_approval_use(&store, id, &other[i], NULL, &err), -ESTALE);
		assert_string_not_equal(ask(&other[i], true), id);
	}
	assert_int_equal(state_of(id), CORDON_APPROVAL_APPROVED);
	wanted.client = "the name that a client gives itself means nothing";
	assert_int_equal(cordon_approval_use(&store, id, &wanted, NULL, &err), 0);
}

static void only_a_grant_can_be_given_for_longer(void **state)
{
	struct cordon_approval_answer given = { .approve = true, .span = CORDON_APPROVAL_POLICY };
	struct cordon_approval_ask wanted = question();
	json_auto_t *grant = json_pack("{s:s}", "host", "example.org");
	struct cordon_error err = { 0 };

	(void)state;
	assert_int_equal(cordon_approval_answer(&store, ask(&wanted, true), &given, NULL, &err), -EINVAL);
	wanted.question = "Another?";
	wanted.grant = grant;
	assert_int_equal(cordon_approval_answer(&store, ask(&wanted, true), &given, NULL, &err), 0);
}

static void no_client_can_fill_the_store(void **state)
{
	struct cordon_approval_ask wanted = question();
	struct cordon_error err = { 0 };
	autofree char *first = strdup(ask(&wanted, true));
	size_t refused = 0;

	(void)state;
	for (int i = 0; i < 500; i++) {
		json_auto_t *numbered = json_pack("{s:i}", "number", i);
		autoapproval struct cordon_approval_record record = { 0 };

		wanted.args = numbered;
		if (cordon_approval_ask(&store, &wanted, &record, NULL, &err) == 0)
			continue;
		assert_int_equal(err.kind, CORDON_KIND_LIMIT);
		refused++;
	}
	assert_int_equal(refused, 500 - CORDON_APPROVALS_EACH_MAX + 1);
	wanted = question();
	wanted.principal = "token:2"; /* another client is not hindered */
	ask(&wanted, true);
	/* What is over makes room; what waits stays. */
	wanted = question();
	assert_int_equal(answer(first, true, &err), 0);
	assert_int_equal(cordon_approval_use(&store, first, &wanted, NULL, &err), 0);
	wanted.question = "One more?";
	ask(&wanted, true);
	assert_int_equal(cordon_approval_find(&store, first, first, NULL), -ENOENT);
}

static void hostile_text_is_escaped(void **state)
{
	struct cordon_approval_ask wanted = question();
	autoapproval struct cordon_approval_record record = { 0 };
	autofree char *huge = malloc(CORDON_APPROVAL_TEXT_MAX + 2);

	(void)state;
	wanted.client = "\x1b[31mred\xe2\x80\xae\n\xff";
	assert_int_equal(cordon_approval_ask(&store, &wanted, &record, NULL, NULL), 0);
	assert_string_equal(record.client, "\\e[31mred\\u{202e}\\n\\xff");
	assert_non_null(huge);
	memset(huge, 'a', CORDON_APPROVAL_TEXT_MAX + 1);
	huge[CORDON_APPROVAL_TEXT_MAX + 1] = '\0';
	wanted.question = huge;
	assert_int_equal(cordon_approval_ask(&store, &wanted, &record, NULL, NULL), -E2BIG);
}

/* Many processes answer at once, yes and no; one of them wins. */
static void one_of_many_answers_wins(void **state)
{
	struct cordon_approval_ask wanted = question();
	autofree char *id = strdup(ask(&wanted, true));
	int won = 0;

	(void)state;
	for (int i = 0; i < 16; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(answer(id, i % 2, NULL) == 0 ? 0 : 1);
	}
	for (int i = 0; i < 16; i++) {
		int status = -1;

		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		won += WEXITSTATUS(status) == 0;
	}
	assert_int_equal(won, 1);
}

static void approvals_are_found_and_removed(void **state)
{
	struct cordon_approval_ask wanted = question();
	const struct cordon_approval_query waiting = { .waiting = true };
	autoapprovals struct cordon_approvals all = { 0 }, some = { 0 };
	autofree char *one = strdup(ask(&wanted, true));
	autofree char *two = NULL;
	char found[CORDON_ID_SIZE], beginning[9];
	size_t removed = 9;

	(void)state;
	wanted.principal = "session:1";
	two = strdup(ask(&wanted, true));
	set_time(two, "created_at", cordon_time_now() + 1000);
	assert_int_equal(cordon_approval_find(&store, "latest", found, NULL), 0);
	assert_string_equal(found, two);
	snprintf(beginning, sizeof(beginning), "%.8s", one);
	assert_int_equal(cordon_approval_find(&store, beginning, found, NULL), 0);
	assert_string_equal(found, one);
	assert_int_equal(cordon_approval_find(&store, "abc", found, NULL), -EINVAL);
	assert_int_equal(cordon_approval_find(&store, "../../tokens", found, NULL), -ENOENT);
	assert_int_equal(cordon_approval_get(&store, "../tokens/1", NULL, NULL), -ENOENT);
	assert_int_equal(answer(one, false, NULL), 0);
	assert_int_equal(cordon_approvals_load(&store, NULL, &all, NULL), 0);
	assert_int_equal(all.n, 2);
	assert_int_equal(all.waiting, 1);
	assert_int_equal(cordon_approvals_load(&store, &waiting, &some, NULL), 0);
	assert_int_equal(some.n, 1);
	assert_string_equal(some.items[0].id, two);
	assert_int_equal(cordon_approvals_gc(&store.home, cordon_state_kinds[CORDON_STATE_KIND_APPROVALS].keep_ms,
					     &removed, NULL),
			 0);
	assert_int_equal(removed, 0);
	set_time(one, "expires_at", cordon_time_now() - cordon_state_kinds[CORDON_STATE_KIND_APPROVALS].keep_ms - 1);
	assert_int_equal(cordon_approvals_gc(&store.home, cordon_state_kinds[CORDON_STATE_KIND_APPROVALS].keep_ms,
					     &removed, NULL),
			 0);
	assert_int_equal(removed, 1);
	assert_int_equal(cordon_approval_find(&store, beginning, found, NULL), -ENOENT);
	assert_int_equal(state_of(two), CORDON_APPROVAL_WAITING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(the_first_answer_wins_and_counts_once),
		store_test(a_denial_stands_until_it_expires),
		store_test(what_nobody_answers_or_uses_expires),
		store_test(an_approval_is_about_one_call_only),
		store_test(only_a_grant_can_be_given_for_longer),
		store_test(no_client_can_fill_the_store),
		store_test(hostile_text_is_escaped),
		store_test(one_of_many_answers_wins),
		store_test(approvals_are_found_and_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
