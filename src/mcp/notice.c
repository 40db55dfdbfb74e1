/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A notice on the desktop when an approval begins to wait (session/desktop.c sends it). All servers of a user together send at
 * most one a second; what comes faster is counted in the next one.
 *
 * INVARIANT: the question may be an agent's text. It is escaped for markup, and short.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/time.h"
#include "mcp/internal.h"
#include "session/session.h"

#define INTERVAL_MS 1000
#define SHOWN_MAX 240 /* columns of the question */

/* Whether a notice may be sent now; if so, nobody else sends one for a second. The time of a file says when the last was. */
static bool take_turn(const struct cordon_mcp *mcp)
{
	autofd int dir = -1;
	autofd int fd = -1;
	struct stat st;
	int64_t passed;

	if (cordon_home_subdir(&mcp->store->home, CORDON_APPROVALS_DIR, &dir, NULL) < 0)
		return false;
	fd = openat(dir, "notice", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		return false;
	passed = cordon_time_now() - ((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000);
	/* An empty file was just made. */
	if (st.st_size && passed >= 0 && passed < INTERVAL_MS)
		return false;
	return pwrite(fd, ".", 1, 0) == 1;
}

/* Adds the question, cut, with what markup means made text. */
static void add_question(struct cordon_buf *body, const char *question)
{
	size_t n = cordon_text_fit(question, strlen(question), SHOWN_MAX);

	for (size_t i = 0; i < n; i++) {
		if (question[i] == '&')
			cordon_buf_adds(body, "&amp;");
		else if (question[i] == '<')
			cordon_buf_adds(body, "&lt;");
		else if (question[i] == '>')
			cordon_buf_adds(body, "&gt;");
		else
			cordon_buf_addc(body, question[i]);
	}
	if (question[n])
		cordon_buf_adds(body, "...");
}

void cordon_mcp_notice(struct cordon_mcp *mcp, const struct cordon_approval_record *record)
{
	autobuf struct cordon_buf body = CORDON_BUF(8 * SHOWN_MAX + 256);

	if (!cordon_desktop_exists())
		return;
	if (mcp->notice_due != INT64_MAX || !take_turn(mcp)) {
		if (mcp->notice_due == INT64_MAX)
			mcp->notice_due = cordon_time_monotonic() + INTERVAL_MS;
		return;
	}
	add_question(&body, record->question);
	cordon_buf_addf(&body, "\ncordon approvals show %.*s", CORDON_APPROVAL_SHORT, record->id);
	if (body.data)
		cordon_desktop_notice(body.data);
}

void cordon_mcp_notice_work(struct cordon_mcp *mcp, int64_t now)
{
	const struct cordon_approval_query query = { .waiting = true };
	autoapprovals struct cordon_approvals waiting = { 0 };
	char body[128];

	if (mcp->notice_due > now)
		return;
	if (!take_turn(mcp)) {
		mcp->notice_due = now + INTERVAL_MS;
		return;
	}
	mcp->notice_due = INT64_MAX;
	if (cordon_approvals_load(mcp->store, &query, &waiting, NULL) < 0 || waiting.n == 0)
		return;
	snprintf(body, sizeof(body), "%zu approval%s: cordon approvals list", waiting.n,
		 waiting.n == 1 ? " waits" : "s wait");
	cordon_desktop_notice(body);
}
