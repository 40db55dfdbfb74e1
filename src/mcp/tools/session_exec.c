/* SPDX-License-Identifier: Apache-2.0 */
/* The tool session_exec: a further command in a session that runs. It is a call that goes on when the command writes,
 * reads or ends, so the server serves others meanwhile. */
#include <poll.h>
#include <sys/epoll.h>

#include "base/text.h"
#include "base/time.h"
#include "mcp/internal.h"
#include "mcp/tools/session_wait.h"

#define KEPT_MAX ((size_t)64 << 10) /* bytes of a stream's beginning that are kept, and of its end */
#define STEP_MAX                                                                                                       \
	((size_t)512 << 10) /* bytes of a stream that one step reads, so that no command keeps the server busy */

/* What a stream wrote: its beginning and its end. */
struct kept {
	struct cordon_buf head, tail;
	uint64_t cut; /* bytes between them */
};

struct exec {
	struct cordon_session_exec command;
	char id[CORDON_ID_SIZE];
	int epoll_fd; /* readable when one of the command's descriptors is ready */
	json_t *args;
	size_t sent; /* bytes of the input that the command has */
	struct kept kept[2];
	int64_t until;
};

static void exec_free(struct exec *exec)
{
	if (!exec)
		return;
	for (int i = 0; i < 2; i++) {
		cordon_buf_done(&exec->kept[i].head);
		cordon_buf_done(&exec->kept[i].tail);
	}
	cordon_session_exec_done(&exec->command);
	cordon_closep(&exec->epoll_fd);
	json_decref(exec->args);
	free(exec);
}

/* Closing the connection ends the command, when the call was cancelled or its time is over. */
static void drop(struct cordon_mcp_call *call)
{
	exec_free(call->state);
}

static int watch(const struct exec *exec, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(exec->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Closes one of the command's descriptors. */
static void unwatch(const struct exec *exec, int *fd)
{
	if (*fd >= 0)
		epoll_ctl(exec->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	cordon_closep(fd);
}

static void keep(struct kept *kept, const char *bytes, size_t n)
{
	size_t room = KEPT_MAX - kept->head.len, first = n < room ? n : room;
	size_t over;

	cordon_buf_add(&kept->head, bytes, first);
	cordon_buf_add(&kept->tail, bytes + first, n - first);
	/* The tail may become twice as long before it is cut, so that it is seldom moved. */
	if (kept->tail.len <= 2 * KEPT_MAX)
		return;
	over = kept->tail.len - KEPT_MAX;
	memmove(kept->tail.data, kept->tail.data + over, KEPT_MAX + 1);
	kept->tail.len = KEPT_MAX;
	kept->cut += over;
}

/* Reads what the command wrote, as far as one step goes. */
static void read_output(struct exec *exec, int which)
{
	int *fd = &exec->command.output[which];
	char chunk[32768];

	for (size_t total = 0; *fd >= 0 && total < STEP_MAX;) {
		ssize_t n = read(*fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			unwatch(exec, fd);
			return;
		}
		keep(&exec->kept[which], chunk, (size_t)n);
		total += (size_t)n;
	}
}

static void write_input(struct exec *exec)
{
	const json_t *input = json_object_get(exec->args, "input");
	size_t n = json_string_length(input);
	ssize_t got = 1;

	while (exec->command.input >= 0 && exec->sent < n && got > 0) {
		got = write(exec->command.input, json_string_value(input) + exec->sent, n - exec->sent);
		if (got > 0)
			exec->sent += (size_t)got;
		else if (errno != EAGAIN && errno != EINTR)
			exec->sent = n; /* the command reads no more */
	}
	if (exec->sent == n)
		unwatch(exec, &exec->command.input);
}

/* Returns what was kept of a stream as text: bytes that are no UTF-8 are escaped. */
static json_t *text_of(struct kept *kept)
{
	autobuf struct cordon_buf whole = CORDON_BUF(8 * KEPT_MAX), safe = CORDON_BUF(64 * KEPT_MAX);
	size_t over = kept->tail.len > KEPT_MAX ? kept->tail.len - KEPT_MAX : 0;
	uint64_t cut = kept->cut + over;

	cordon_buf_add(&whole, kept->head.data ? kept->head.data : "", kept->head.len);
	if (cut)
		cordon_buf_addf(&whole, "\n[cordon: %llu bytes are left out here]\n", (unsigned long long)cut);
	cordon_buf_add(&whole, kept->tail.len ? kept->tail.data + over : "", kept->tail.len - over);
	if (!whole.len || (cordon_utf8_valid(whole.data, whole.len) && !memchr(whole.data, '\0', whole.len)))
		return json_stringn(whole.len ? whole.data : "", whole.len);
	cordon_text_escape_lines(&safe, whole.data, whole.len);
	return json_stringn(safe.data ? safe.data : "", safe.len);
}

/* Answers with what the command wrote and how it ended; `end` is NULL when its time is over. */
static void answer(struct cordon_mcp_call *call, const json_t *end)
{
	struct exec *exec = call->state;
	json_t *result = json_pack("{s:s, s:b, s:o, s:o}", "session_id", exec->id, "timed_out", !end, "stdout",
				   text_of(&exec->kept[0]), "stderr", text_of(&exec->kept[1]));

	if (json_object_get(end, "exit_code"))
		json_object_set(result, "exit_code", json_object_get(end, "exit_code"));
	if (json_object_get(end, "signal"))
		json_object_set(result, "signal", json_object_get(end, "signal"));
	cordon_mcp_tool_answer(&call->request, call->tool->name, result, NULL, NULL);
}

/* The session said how the command ended, or that it was not run. */
static void ended(struct cordon_mcp_call *call)
{
	struct exec *exec = call->state;
	json_auto_t *end = NULL;
	const json_t *why;
	struct cordon_error err = { 0 };

	/* What the command wrote before its end is in the pipes by now. */
	for (int i = 0; i < 2; i++)
		read_output(exec, i);
	if (cordon_session_exec_answer(&exec->command, &end, &err) == 0) {
		why = json_object_get(end, "why");
		if (!why) {
			answer(call, end);
			return;
		}
		cordon_fail(&err, -ECANCELED, cordon_kind_parse(cordon_json_string(why, "kind")), "%s: %s",
			    json_string_value(json_array_get(json_object_get(exec->args, "command"), 0)),
			    cordon_json_string(why, "message"));
	}
	cordon_mcp_tool_answer(&call->request, call->tool->name, NULL, NULL, &err);
}

static bool step(struct cordon_mcp_call *call, int64_t now)
{
	struct exec *exec = call->state;
	struct epoll_event ready;
	struct pollfd control = { .fd = exec->command.control, .events = POLLIN };

	write_input(exec);
	for (int i = 0; i < 2; i++)
		read_output(exec, i);
	if (poll(&control, 1, 0) > 0) {
		ended(call);
		return true;
	}
	if (now >= exec->until) {
		answer(call, NULL);
		return true;
	}
	cordon_mcp_call_progress(call, now, "running");
	/* A stream may have more than one step reads; then the descriptor stays readable. */
	call->due = epoll_wait(exec->epoll_fd, &ready, 1, 0) > 0 ? now : exec->until;
	return false;
}

static int begin(const struct cordon_mcp_request *request, json_t *args, struct exec *exec, struct cordon_error *err)
{
	autosessionrecord struct cordon_session_record session = { 0 };
	int r = cordon_session_get(request->mcp->store, cordon_json_string(args, "session_id"), &session, err);

	if (r < 0)
		return r;
	exec->args = json_incref(args);
	exec->until = cordon_time_monotonic() +
		      1000 * cordon_json_integer_or(args, "timeout_seconds",
						    CORDON_DEFAULT_SESSION_EXEC_TIMEOUT_SECONDS);
	cordon_copy(exec->id, sizeof(exec->id), session.id, strlen(session.id));
	r = cordon_session_exec_begin(request->mcp->store, session.id, json_object_get(args, "command"), &exec->command,
				      err);
	if (r < 0)
		return r;
	exec->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r = exec->epoll_fd < 0 ? -errno : watch(exec, exec->command.control, EPOLLIN);
	if (r == 0)
		r = watch(exec, exec->command.input, EPOLLOUT);
	for (int i = 0; r == 0 && i < 2; i++)
		r = watch(exec, exec->command.output[i], EPOLLIN);
	return r < 0 ? cordon_fail_errno(err, r, "cannot wait for the command") : 0;
}

int cordon_mcp_session_exec_call(struct cordon_mcp_request *request, const struct cordon_mcp_tool *tool, json_t *args,
				 struct cordon_error *err)
{
	struct exec *exec = calloc(1, sizeof(*exec));
	struct cordon_mcp_call *call;
	int r;

	if (!exec)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "out of memory");
	*exec = (struct exec){ .command = CORDON_SESSION_EXEC_NONE, .epoll_fd = -1 };
	for (int i = 0; i < 2; i++)
		exec->kept[i] = (struct kept){ .head = CORDON_BUF(KEPT_MAX + 1), .tail = CORDON_BUF(4 * KEPT_MAX) };
	r = begin(request, args, exec, err);
	call = r == 0 ? cordon_mcp_call_begin(request) : NULL;
	if (!call) {
		exec_free(exec);
		return r < 0 ? r
			     : cordon_fail(err, -EAGAIN, CORDON_KIND_LIMIT,
					   "too many calls are waiting; ask again later");
	}
	call->tool = tool;
	call->state = exec;
	call->step = step;
	call->drop = drop;
	call->due = cordon_time_monotonic();
	cordon_mcp_call_wait(call, exec->epoll_fd);
	return CORDON_MCP_LATER;
}

static int session_exec(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			struct cordon_error *err)
{
	(void)ret_result, (void)ret_text;
	return cordon_mcp_session_exec_call(request, &cordon_mcp_session_exec, args, err);
}

const struct cordon_mcp_tool cordon_mcp_session_exec = {
	.name = "session_exec",
	.title = "Run a command in a session",
	.description =
		"Run another command inside a session that runs, held by the same layers as its agent, and return its output and "
		"exit_code. It is killed when its time is over (timed_out), the call is cancelled or the session ends. Of long output "
		"the beginning and the end are returned.",
	.input = CORDON_INPUT_SESSION_EXEC,
	.output = CORDON_OUTPUT_SESSION_EXEC,
	.always = CORDON_ALWAYS_SESSION_EXEC,
	.open_world = true,
	.call = session_exec,
};
