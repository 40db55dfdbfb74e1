/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a job, as files and locks tell them; and the packets from its supervisor to the owner of the crew: whole, in order, bounded. */
#include "unit.h"

#include <sys/socket.h>

#include "job/crew_internal.h"
#include "job/relay.h"
#include "policy/policy.h"
#include "run/result.h"

static void every_state_has_a_word_of_its_own(void **state)
{
	static const char *const words[] = { "queued",	"starting",  "running", "completed", "failed",
					     "timeout", "cancelled", "refused", "lost" };

	(void)state;
	assert_int_equal(CORDON_ARRAY_SIZE(words), CORDON_JOB__MAX);
	for (unsigned int i = 0; i < CORDON_JOB__MAX; i++) {
		assert_string_equal(cordon_job_state_name((cordon_job_state)i), words[i]);
		assert_int_equal(cordon_job_state_ended((cordon_job_state)i), i > 2);
	}
	assert_string_equal(cordon_job_state_name(CORDON_JOB__MAX), "lost");
}

static void how_a_job_stands_is_told_by_files_and_locks(void **state)
{
	struct cordon_home home = CORDON_HOME_NONE;
	struct cordon_crew_info info = { .created = 1, .max_concurrent = 2 }, read;
	struct cordon_error err = { 0 };
	struct cordon_job job = { .name = "a" };
	struct cordon_result result = { .state = CORDON_STATE_FAILED, .exit_code = 9, .own_exit = 9, .violations = 2 };
	char program[] = "true", *argv[] = { program, NULL };
	struct cordon_policy *policy = NULL, *seen = NULL;
	struct cordon_run_spec spec = { .argv = argv };
	json_t *record = NULL;
	int crew, owner, dir, alive;

	(void)state;
	assert_int_equal(setenv("CORDON_HOME", unit_dir, 1), 0);
	assert_int_equal(chmod(unit_dir, 0700), 0);
	assert_int_equal(cordon_home_open(&home, &err), 0);
	assert_int_equal(cordon_policy_new(unit_dir, &policy, &err), 0);
	assert_int_equal(cordon_policy_add_grant(policy, "lib", CORDON_ACCESS_READ, NULL, &err), 0);
	spec.policy = policy;
	assert_int_equal(cordon_uuid_new(info.id), 0);
	assert_int_equal(cordon_crew_make(&home, &info, &crew, &owner, &err), 0);
	assert_int_equal(cordon_crew_info_read(crew, &read, &err), 0);
	assert_true(read.owned && read.max_concurrent == 2 && read.created == 1 && !read.detached);

	cordon_crew_job_read(crew, 0, true, &job);
	assert_int_equal(job.state, CORDON_JOB_QUEUED);
	cordon_crew_job_read(crew, 0, false, &job);
	assert_int_equal(job.state, CORDON_JOB_LOST);
	assert_int_equal(job.own_exit, 125);
	assert_int_equal(cordon_crew_request(crew, 1), 0);
	cordon_crew_job_read(crew, 1, false, &job);
	assert_int_equal(job.state, CORDON_JOB_CANCELLED);
	assert_int_equal(job.own_exit, 143);
	assert_false(cordon_crew_requested(crew, 0));

	assert_int_equal(cordon_crew_job_make(crew, 0, &dir, &alive, &err), 0);
	cordon_crew_job_read(crew, 0, false, &job);
	assert_int_equal(job.state, CORDON_JOB_STARTING);
	assert_int_equal(cordon_crew_job_prepare(dir, &job, &spec, &err), 0);
	cordon_crew_job_read(crew, 0, true, &job);
	assert_int_equal(job.state, CORDON_JOB_STARTING);
	assert_int_equal(cordon_crew_record(&home, info.id, 0, &record, &err), -ENOENT);
	cordon_crew_job_running(dir);
	assert_int_equal(cordon_crew_record(&home, info.id, 0, &record, &err), 0);
	assert_string_equal(json_string_value(json_array_get(json_object_get(record, "command"), 0)), "true");
	json_decref(record);
	assert_int_equal(cordon_crew_policy(&home, info.id, 0, &seen, &err), 0);
	assert_int_equal(cordon_policy_access(seen, "lib/x"), CORDON_ACCESS_READ);
	cordon_policy_free(seen);
	assert_int_equal(cordon_crew_policy(&home, info.id, 1, &seen, &err), -ENOENT);
	cordon_crew_job_read(crew, 0, true, &job);
	assert_int_equal(job.state, CORDON_JOB_RUNNING);
	assert_int_equal(job.own_exit, -1);
	assert_false(cordon_crew_woken(alive));
	cordon_crew_wake(dir, CORDON_CREW_ALIVE);
	assert_true(cordon_crew_woken(alive));
	assert_int_equal(cordon_crew_request(crew, CORDON_CREW_ALL), 0);
	cordon_crew_job_read(crew, 0, true, &job);
	assert_int_equal(job.state, CORDON_JOB_RUNNING); /* a request is not yet an end */

	close(alive);
	cordon_crew_job_read(crew, 0, true, &job);
	assert_int_equal(job.state, CORDON_JOB_LOST);
	assert_int_equal(cordon_crew_result_write(dir, &job, &result, false, true, &err), 0);
	cordon_crew_job_read(crew, 0, true, &job);
	assert_int_equal(job.state, CORDON_JOB_FAILED);
	assert_true(job.exit_code == 9 && job.own_exit == 9 && job.violations == 2);
	close(owner);
	assert_false(cordon_crew_held(crew, CORDON_CREW_OWNER));
	close(dir);
	close(crew);
	cordon_policy_free(policy);
	cordon_home_done(&home);
}

static int make_pair(void **state)
{
	static int pair[2];

	*state = pair;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state)
{
	int *pair = *state;

	cordon_closep(&pair[0]);
	cordon_closep(&pair[1]);
	return 0;
}

static void what_is_sent_arrives_whole_and_in_order(void **state)
{
	int *pair = *state;
	static char buffer[CORDON_RELAY_PACKET_MAX];
	struct cordon_relay relay = CORDON_RELAY(pair[0]);
	struct cordon_event event = { .kind = CORDON_EVENT_VIOLATION,
				      .op = "write",
				      .path = "a/b",
				      .verdict = CORDON_DENY,
				      .reason = CORDON_REASON_PROTECTED,
				      .held = true,
				      .count = 7 };
	struct cordon_relayed got;

	assert_int_equal(cordon_relay_receive(pair[1], buffer, &got), -EAGAIN);
	cordon_relay_running(&relay, "an-id");
	cordon_relay_output(&relay, 2, "x\0y", 3);
	cordon_relay_event(&relay, &event);
	assert_int_equal(cordon_relay_receive(pair[1], buffer, &got), 1);
	assert_int_equal(got.kind, CORDON_RELAYED_RUNNING);
	assert_string_equal(got.run_id, "an-id");
	assert_int_equal(cordon_relay_receive(pair[1], buffer, &got), 1);
	assert_int_equal(got.kind, CORDON_RELAYED_OUTPUT);
	assert_int_equal(got.stream, 2);
	assert_int_equal(got.n, 3);
	assert_memory_equal(got.bytes, "x\0y", 3);
	assert_int_equal(cordon_relay_receive(pair[1], buffer, &got), 1);
	assert_int_equal(got.kind, CORDON_RELAYED_EVENT);
	assert_string_equal(got.event.op, "write");
	assert_string_equal(got.event.path, "a/b");
	assert_null(got.event.rule);
	assert_true(got.event.kind == CORDON_EVENT_VIOLATION && got.event.verdict == CORDON_DENY && got.event.held &&
		    !got.event.denied);
	assert_int_equal(got.event.count, 7);
	cordon_closep(&pair[0]);
	assert_int_equal(cordon_relay_receive(pair[1], buffer, &got), 0);
	cordon_buf_done(&relay.queue);
}

static void a_full_queue_drops_events_and_says_how_many(void **state)
{
	int *pair = *state;
	static char buffer[CORDON_RELAY_PACKET_MAX], piece[CORDON_CREW_PIECE_MAX];
	struct cordon_relay relay = CORDON_RELAY(pair[0]);
	struct cordon_event event = { .kind = CORDON_EVENT_LIMIT, .op = "memory", .count = 1 };
	struct cordon_relayed got;
	size_t sent = 0, limits = 0, untold = 0;

	while (relay.queue.len + sizeof(piece) + 256 < CORDON_RELAY_QUEUE_MAX)
		cordon_relay_output(&relay, 1, piece, sizeof(piece));
	for (; sent < 1000; sent++)
		cordon_relay_event(&relay, &event);
	assert_true(relay.untold > 0);
	assert_true(relay.queue.len <= CORDON_RELAY_QUEUE_MAX);
	for (bool last = false;; last = true) {
		while (cordon_relay_receive(pair[1], buffer, &got) > 0) {
			limits += got.kind == CORDON_RELAYED_EVENT && got.event.kind == CORDON_EVENT_LIMIT;
			untold += got.kind == CORDON_RELAYED_EVENT && got.event.kind == CORDON_EVENT_UNTOLD
					  ? got.event.count
					  : 0;
			cordon_relay_flush(&relay);
		}
		if (last)
			break;
		cordon_relay_event(&relay, &event); /* there is room again */
		sent++;
	}
	assert_int_equal(relay.queue.len, 0);
	assert_int_equal(relay.untold, 0);
	assert_true(limits > 0 && untold > 0);
	assert_int_equal(limits + untold, sent);
	cordon_buf_done(&relay.queue);
}

static void an_owner_that_is_gone_costs_nothing(void **state)
{
	int *pair = *state;
	struct cordon_relay relay = CORDON_RELAY(fcntl(pair[0], F_DUPFD_CLOEXEC, 3));

	cordon_closep(&pair[1]);
	cordon_relay_output(&relay, 1, "x", 1);
	assert_int_equal(relay.fd, -1);
	cordon_relay_running(&relay, "an-id");
	cordon_relay_finish(&relay);
	assert_int_equal(relay.queue.len, 0);
}

static void a_packet_that_is_none_is_refused(void **state)
{
	int *pair = *state;
	static char buffer[CORDON_RELAY_PACKET_MAX];
	char wrong[64] = { 0 };
	struct cordon_relayed got;

	for (size_t n = 1; n < sizeof(wrong); n += 7) {
		wrong[0] = (char)(n % 5);
		assert_int_equal(send(pair[0], wrong, n, 0), n);
		assert_true(cordon_relay_receive(pair[1], buffer, &got) != 0);
	}
	assert_int_equal(send(pair[0], wrong, 3, 0), 3);
	assert_int_equal(cordon_relay_receive(pair[1], buffer, &got), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_state_has_a_word_of_its_own),
		unit_test_in_dir(how_a_job_stands_is_told_by_files_and_locks),
		cmocka_unit_test_setup_teardown(what_is_sent_arrives_whole_and_in_order, make_pair, close_pair),
		cmocka_unit_test_setup_teardown(a_full_queue_drops_events_and_says_how_many, make_pair, close_pair),
		cmocka_unit_test_setup_teardown(an_owner_that_is_gone_costs_nothing, make_pair, close_pair),
		cmocka_unit_test_setup_teardown(a_packet_that_is_none_is_refused, make_pair, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
