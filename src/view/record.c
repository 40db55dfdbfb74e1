/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a view's record, with the fields in the order in which people read them. */
#include "view/internal.h"

static const char *const state_names[] = {
	[CORDON_VIEW_LIVE] = "live",
	[CORDON_VIEW_ENDED] = "ended",
	[CORDON_VIEW_APPLIED] = "applied",
	[CORDON_VIEW_DISCARDED] = "discarded",
	NULL,
};

static const char *const git_names[] = {
	[CORDON_VIEW_GIT_NONE] = "none",
	[CORDON_VIEW_GIT_READ] = "read",
	[CORDON_VIEW_GIT_COMMIT] = "commit",
	NULL,
};

/* NOLINTBEGIN(bugprone-macro-parentheses, bugprone-sizeof-expression): names of members; pointers have a size, too. */
#define FIELD(struct_, key_, type_, member_)                                                                           \
	.key = key_, .type = CORDON_FIELD_##type_, .offset = offsetof(struct struct_, member_),                        \
	.size = sizeof(((struct struct_ *)0)->member_)

static const struct cordon_field time_fields[] = {
	{ FIELD(cordon_view_time, "sec", NUMBER, sec) },
	{ FIELD(cordon_view_time, "nsec", NUMBER, nsec) },
	{ 0 },
};

static const struct cordon_record_kind time_kind = {
	.what = "view",
	.size = sizeof(struct cordon_view_time),
	.other = offsetof(struct cordon_view_time, other),
	.fields = time_fields,
};

#define VIEW(key_, type_, member_) FIELD(cordon_view_record, key_, type_, member_)

static const struct cordon_field view_fields[] = {
	{ VIEW("id", TEXT, id), .needed = true },
	{ VIEW("state", NAME, state), .names = state_names, .needed = true },
	{ VIEW("root", STRING, root), .needed = true },
	{ VIEW("created_at", TEXT, created_at) },
	{ VIEW("command", STRINGS, command) },
	{ VIEW("run", TEXT, run) },
	{ VIEW("session", TEXT, session) },
	{ VIEW("git", NAME, git), .names = git_names, .needed = true },
	{ VIEW("lost", FLAG, lost) },
	{ VIEW("dev", NUMBER, dev), .hidden = true, .needed = true },
	{ VIEW("ino", NUMBER, ino), .hidden = true, .needed = true },
	{ VIEW("lasting", TEXT, lasting), .hidden = true },
	{ VIEW("started", INNER, started), .inner = &time_kind, .needed = true },
	{ VIEW("ended", INNER, ended), .inner = &time_kind },
	{ VIEW("layers", STRINGS, layers) },
	{ 0 },
};

const struct cordon_record_kind cordon_view_kind = {
	.what = "view",
	.size = sizeof(struct cordon_view_record),
	.other = offsetof(struct cordon_view_record, other),
	.id = offsetof(struct cordon_view_record, id),
	.created_at = offsetof(struct cordon_view_record, created_at),
	.fields = view_fields,
};
/* NOLINTEND(bugprone-macro-parentheses, bugprone-sizeof-expression) */

void cordon_view_record_done(struct cordon_view_record *record)
{
	cordon_fields_done(&cordon_view_kind, record);
}

json_t *cordon_view_json(const struct cordon_view_record *record)
{
	return cordon_fields_write(&cordon_view_kind, record, true);
}

const char *cordon_view_state_name(cordon_view_state state)
{
	return (unsigned int)state < CORDON_VIEW_STATE__MAX ? state_names[state] : "?";
}

const char *cordon_view_git_name(cordon_view_git git)
{
	return (unsigned int)git < CORDON_VIEW_GIT__MAX ? git_names[git] : "?";
}
