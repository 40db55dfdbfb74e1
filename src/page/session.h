/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about one session share. */
#ifndef CORDON_PAGE_SESSION_H
#define CORDON_PAGE_SESSION_H

#include "page/internal.h"
#include "session/session.h"

/* session_allow.c: "/session/ID/allow" asks what to allow; the query's host, or path and access, are filled in. The other does what
 * its form says; *ret_done is a word for cordon_page_redirect(). */
void cordon_page_session_allow(struct cordon_page *page, const struct cordon_session_record *session);
int cordon_page_session_do_allow(struct cordon_page *page, const char **ret_done, struct cordon_error *err);

#endif
