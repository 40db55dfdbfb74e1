/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what was measured in runs, from the newest end of a run on. */
#include "run/stats.h"

struct collecting {
	size_t max, ended;
	json_t *stats;
	bool failed; /* no memory */
};

static bool take(void *data, const struct cordon_audit_record *record, const char *line, size_t n)
{
	struct collecting *c = data;
	json_t *detail = json_object_get(record->object, "detail"), *metrics = json_object_get(detail, "metrics"), *copy;

	(void)line, (void)n;
	if (!record->session_id)
		return true;
	c->ended++;
	if (!json_is_object(metrics))
		return true;
	copy = json_deep_copy(metrics);
	json_object_set_new(copy, "session_id", json_string(record->session_id));
	json_object_set(copy, "duration_ms", json_object_get(detail, "duration_ms"));
	json_object_set(copy, "time", json_object_get(record->object, "time"));
	c->failed |= json_array_append_new(c->stats, copy) < 0;
	return !c->failed && json_array_size(c->stats) < c->max;
}

int cordon_stats_list(const struct cordon_home *home, const struct cordon_stats_ask *ask, json_t **ret_stats,
		      size_t *ret_ended, bool *ret_more, struct cordon_error *err)
{
	json_auto_t *stats = json_array();
	struct collecting c = { .max = ask->max, .stats = stats };
	struct cordon_audit_search search = { .filter = ask->filter, .deadline = ask->deadline, .data = &c, .take = take };
	struct cordon_audit_searched searched = { 0 };
	int r;

	search.filter.types = UINT32_C(1) << CORDON_AUDIT_END;
	r = cordon_audit_search(home, &search, &searched, err);
	if (r == 0 && c.failed)
		r = cordon_fail_errno(err, -ENOMEM, "what runs cost");
	if (r < 0)
		return r;
	if (ret_ended)
		*ret_ended = c.ended;
	if (ret_more)
		*ret_more = searched.more;
	*ret_stats = cordon_steal_ptr(&stats);
	return 0;
}
