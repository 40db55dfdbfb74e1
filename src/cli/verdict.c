/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the answer to a question about a path or host as an object. */
#include "cli/verdict.h"
#include "cli/cli.h"

static json_t *text_or_null(const char *s)
{
	return s ? cordon_cli_json_text(s) : json_null();
}

json_t *cordon_asker_json(const struct cordon_asker *asker, const char *path, size_t len)
{
	static const char *const access_names[] = { "none", "read", "write" };
	const struct cordon_decision *d = &asker->decision;

	return json_pack("{s:o, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:b}", "path", cordon_cli_json_bytes(path, len),
			 "op", cordon_asker_op(asker), "decision", cordon_verdict_name(d->verdict), "reason",
			 cordon_reason_name(d->reason), "access", access_names[d->access], "rule",
			 text_or_null(d->rule), "where", text_or_null(d->rule_where), "fence", text_or_null(d->fence),
			 "resolved", cordon_cli_json_text(d->resolved), "exists", (int)asker->resolved.exists);
}
