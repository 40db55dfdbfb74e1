/* SPDX-License-Identifier: Apache-2.0 */
/* Which step of a workflow a person answers. */
#include <stdio.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/workflow_step.h"

static int parse(const char *text, struct cordon_cli_step *ret, struct cordon_error *err)
{
	const char *colon = strchr(text, ':');

	ret->attempt = 0;
	if (cordon_copy(ret->step, sizeof(ret->step), text, colon ? (size_t)(colon - text) : strlen(text)) < 0 ||
	    !cordon_flow_id_valid(ret->step) || (colon && cordon_parse_u64(colon + 1, 0, UINT32_MAX, &ret->attempt) < 0))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "--step wants STEP or STEP:ATTEMPT, not '%.80s'",
				   text);
	return 0;
}

/* Shows the step that waits, and asks. */
static int ask(const struct cordon_cli *cli, const struct cordon_flow_run *run, const json_t *status, bool approve,
	       struct cordon_cli_step *ret)
{
	const char *step = cordon_json_string(status, "currentStepId");
	size_t at = step ? cordon_workflow_step(run->workflow, step) : SIZE_MAX;
	autobuf struct cordon_buf prompt = CORDON_BUF(8 * CORDON_CONFIG_SIZE_MAX);
	struct cordon_error err = { 0 };

	if (at == SIZE_MAX || !cordon_json_true(status, "pendingHumanInput")) {
		cordon_fail(&err, -EALREADY, CORDON_KIND_CONFLICT, "the run %s does not wait for an answer: %s",
			    run->id, cordon_json_string(status, "state"));
		return cordon_cli_fail(cli, &err);
	}
	if (!cordon_cli_can_ask())
		return cordon_cli_usage(cli, "there is no terminal to ask on: say which step, as in --step %s", step);
	ret->attempt = (uint64_t)cordon_json_integer(status, "currentAttempt");
	(void)cordon_copy(ret->step, sizeof(ret->step), step, strlen(step));
	if (run->workflow->steps[at].prompt &&
	    cordon_text_escape(&prompt, run->workflow->steps[at].prompt, strlen(run->workflow->steps[at].prompt)) < 0)
		return cordon_cli_fail(cli, (cordon_fail_errno(&err, -ENOMEM, "the step %s", step), &err));
	fprintf(stderr, "%s: step %s waits for a person (answered before: %llu).\n", run->id, step,
		(unsigned long long)ret->attempt);
	if (prompt.len)
		cordon_cli_wrap(stderr, "    ", prompt.data);
	if (cordon_cli_confirm(approve ? "Approve this step?" : "Reject this step?"))
		return 0;
	cordon_fail(&err, -ECANCELED, CORDON_KIND_CONFLICT, "not answered; step %s still waits", step);
	return cordon_cli_fail(cli, &err);
}

int cordon_cli_step_choose(const struct cordon_cli *cli, const struct cordon_home *home,
			   const struct cordon_flow_run *run, const char *given, bool approve,
			   struct cordon_cli_step *ret)
{
	json_auto_t *status = NULL;
	struct cordon_error err = { 0 };

	if (given)
		return parse(given, ret, &err) < 0 ? cordon_cli_fail(cli, &err) : 0;
	if (cordon_flow_status(home, run->id, &status, &err) < 0)
		return cordon_cli_fail(cli, &err);
	return ask(cli, run, status, approve, ret);
}
