/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages about the audit log share: the filter of the request. */
#ifndef CORDON_PAGE_AUDIT_H
#define CORDON_PAGE_AUDIT_H

#include "audit/query.h"
#include "page/internal.h"

/* The fields of the form, which are also the names in the address. */
enum {
	CORDON_AUDIT_ASK_RUN,
	CORDON_AUDIT_ASK_AGENT,
	CORDON_AUDIT_ASK_PATH,
	CORDON_AUDIT_ASK_DECISION,
	CORDON_AUDIT_ASK_EVENT,
	CORDON_AUDIT_ASK_SINCE,
	CORDON_AUDIT_ASK_UNTIL,
	CORDON_AUDIT_ASK__MAX
};

struct cordon_audit_ask {
	const char *texts[CORDON_AUDIT_ASK__MAX]; /* as they were given, or "" */
	struct cordon_buf path, agent;		  /* as the log has them */
	struct cordon_audit_filter filter;
	uint64_t before; /* the number of a record, or 0 */
};

/* Reads the filter from the address; kind usage. The caller frees it, also after a failure. */
int cordon_audit_ask_read(const struct cordon_page *page, struct cordon_audit_ask *ret_ask, struct cordon_error *err);
void cordon_audit_ask_done(struct cordon_audit_ask *ask);
#define autoask CORDON_CLEANUP(cordon_audit_ask_done)
/* The same filter as a part of an address: "run=1234&amp;since=1h", or "". `since` and `until` are used instead of what was asked, unless
 * they are NULL. */
void cordon_audit_ask_url(struct cordon_page *page, const struct cordon_audit_ask *ask, const char *since,
			  const char *until);

/* audit_check.c: whether the chain is whole, for a small log at once, for others behind a link. */
void cordon_page_audit_whole(struct cordon_page *page);

#endif
