/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the runs that the audit log has records of. */
#include "audit/query.h"

static void freep_reader(struct cordon_audit_reader **reader)
{
	*reader = cordon_audit_reader_free(*reader);
}

int cordon_audit_runs(const struct cordon_home *home, const struct cordon_audit_filter *filter, json_t **ret_runs,
		      struct cordon_error *err)
{
	CORDON_CLEANUP(freep_reader) struct cordon_audit_reader *reader = NULL;
	json_auto_t *runs = json_object(); /* keeps the order in which keys are added */
	struct cordon_audit_item item;
	int r = cordon_audit_reader_new(home, filter, &reader, err);

	while (r == 0 && (r = cordon_audit_reader_next(reader, &item, err)) > 0) {
		const char *id = item.damaged ? NULL : item.record.session_id;

		r = 0;
		if (!id || json_object_get(runs, id) || !cordon_audit_match(filter, &item.record))
			continue;
		if (json_object_set_new(runs, id, json_integer(item.record.time)) < 0)
			r = cordon_fail_errno(err, -ENOMEM, "runs");
	}
	if (r == 0)
		*ret_runs = cordon_steal_ptr(&runs);
	return r;
}
