/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of an agent on behalf of a command:
 *
 *     struct cordon_run_session run = CORDON_RUN_SESSION(cli, &options);
 *     cordon_run_session_open()    policy, home, audit; prints its own errors
 *     cordon_run_session_plan()    what will be enforced
 *     cordon_run_session_run()     record, launch, supervise to the end
 *     cordon_run_session_done()    in any case
 */
#ifndef CORDON_CLI_RUN_SESSION_H
#define CORDON_CLI_RUN_SESSION_H

#include "base/home.h"
#include "cli/run_events.h"
#include "cli/run_options.h"
#include "sandbox/launch.h"
#include "sandbox/runs.h"

struct cordon_run_session {
	struct cordon_cli *cli;
	struct cordon_run_options *options;
	bool dry; /* nothing is made or recorded */
	struct cordon_policy *policy;
	struct cordon_home home;
	char id[CORDON_UUID_SIZE];
	char cwd[CORDON_PATH_MAX];
	char home_dir[CORDON_PATH_MAX];
	struct cordon_plan *plan;
	struct cordon_run_record record;
	int taken_fd;
	struct cordon_run_events events;
	cordon_tier tier;
	char tier_tmp[sizeof(CORDON_TIER_TMP) + CORDON_UUID_SIZE]; /* "" while there is none */
};

#define CORDON_RUN_SESSION(cli_, options_)                                                                             \
	{                                                                                                              \
		.cli = (cli_), .options = (options_), .home = CORDON_HOME_NONE, .record = CORDON_RUN_RECORD_NONE,      \
		.taken_fd = -1                                                                                         \
	}

/* Returns 0, or an exit code after having printed why. */
int cordon_run_session_open(struct cordon_run_session *run);
int cordon_run_session_plan(struct cordon_run_session *run, char **argv, struct cordon_error *err);
/* Fails before the agent has started only. The child is for its layers; it is over. */
int cordon_run_session_run(struct cordon_run_session *run, const struct cordon_observer *observer,
			   struct cordon_child *ret_child, struct cordon_result *ret_result, struct cordon_error *err);
void cordon_run_session_done(struct cordon_run_session *run);

#endif
