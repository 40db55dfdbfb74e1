/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A notice on the desktop, by notify-send, when an approval begins to wait. All servers of a user together send at
 * most one a second; what comes faster is counted in the next one.
 *
 * INVARIANT: the question may be an agent's text. It is escaped for markup, and short.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "approval/notice.h"
#include "base/buf.h"
#include "base/child.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/text.h"
#include "base/time.h"

#define PROGRAM "notify-send"
#define INTERVAL_MS 1000
#define SHOWN_MAX 240 /* columns of the question */

/* Finds the program in the absolute directories of PATH. */
static bool find_program(char ret_path[static CORDON_PATH_MAX])
{
	const char *path = getenv("PATH");

	for (; path && *path; path += strcspn(path, ":"), path += *path == ':') {
		char dir[CORDON_PATH_MAX];

		if (*path == '/' && cordon_copy(dir, sizeof(dir), path, strcspn(path, ":")) == 0 &&
		    cordon_path_join(dir, PROGRAM, ret_path, CORDON_PATH_MAX) == 0 && access(ret_path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Whether there is a desktop: the environment names a message bus of the user's session. */
static bool desktop_exists(void)
{
	const char *address = getenv("DBUS_SESSION_BUS_ADDRESS"), *runtime = getenv("XDG_RUNTIME_DIR");
	char path[CORDON_PATH_MAX];

	if (address && *address)
		return true;
	return runtime && *runtime == '/' && cordon_path_join(runtime, "bus", path, sizeof(path)) == 0 &&
	       access(path, F_OK) == 0;
}

/* Shows a notice there: runs notify-send of the PATH, if there is one, with the text as one argument after "--", and waits for
 * nothing. */
static void show(const char *text)
{
	char program[CORDON_PATH_MAX], name[] = PROGRAM, end[] = "--", summary[] = "cordon: a person is asked";
	autofree char *body = strdup(text);
	char *const argv[] = { name, end, summary, body, NULL };

	if (body && find_program(program) && cordon_child_detach(&(struct cordon_detach){ 0 }) == 0) {
		execve(program, argv, environ);
		_exit(127);
	}
}

/* Whether a notice may be sent now; if so, nobody else sends one for a second. The time of a file says when the last was. */
static bool take_turn(const struct cordon_store *store)
{
	autofd int dir = -1;
	autofd int fd = -1;
	struct stat st;
	int64_t passed;

	if (cordon_home_subdir(&store->home, CORDON_APPROVALS_DIR, &dir, NULL) < 0)
		return false;
	fd = openat(dir, "notice", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || cordon_lock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
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

void cordon_approval_notice(const struct cordon_store *store, const struct cordon_approval_record *record, int64_t *due)
{
	autobuf struct cordon_buf body = CORDON_BUF(8 * SHOWN_MAX + 256);

	if (!desktop_exists())
		return;
	if (*due != INT64_MAX || !take_turn(store)) {
		if (*due == INT64_MAX)
			*due = cordon_time_monotonic() + INTERVAL_MS;
		return;
	}
	add_question(&body, record->question);
	cordon_buf_addf(&body, "\ncordon approvals show %.*s", CORDON_APPROVAL_SHORT, record->id);
	if (body.data)
		show(body.data);
}

void cordon_approval_notice_work(const struct cordon_store *store, int64_t now, int64_t *due)
{
	const struct cordon_approval_query query = { .waiting = true };
	autoapprovals struct cordon_approvals waiting = { 0 };
	char body[128];

	if (*due > now)
		return;
	if (!take_turn(store)) {
		*due = now + INTERVAL_MS;
		return;
	}
	*due = INT64_MAX;
	if (cordon_approvals_load(store, &query, &waiting, NULL) < 0 || waiting.n == 0)
		return;
	snprintf(body, sizeof(body), "%zu approval%s: cordon approvals list", waiting.n,
		 waiting.n == 1 ? " waits" : "s wait");
	show(body);
}
