/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the result of a step in the agent's answer. */
#include "flow/envelope.h"
#include "base/buf.h"
#include "base/json.h"

static const char begin_mark[] = "[workflow_result]", end_mark[] = "[/workflow_result]";

/* ---- the agent's messages in JSON lines ---- */

/* The text of a line that is a message of the agent; NULL for any other line. */
static const char *message_of(const json_t *line)
{
	const json_t *item = json_object_get(line, "item"), *message = json_object_get(line, "msg");

	if (cordon_json_is(line, "type", "item.completed") && cordon_json_is(item, "type", "agent_message"))
		return cordon_json_string(item, "text");
	if (cordon_json_is(message, "type", "agent_message"))
		return cordon_json_string(message, "message");
	return cordon_json_is(line, "type", "result") ? cordon_json_string(line, "result") : NULL;
}

static bool is_blank(const char *text, size_t n)
{
	while (n && strchr(" \t\r", *text) && *text) {
		text++;
		n--;
	}
	return !n;
}

/* Appends the agent's messages to `out` and returns true, when every line is a JSON object. A first line that was cut is
 * left out. */
static bool take_lines(const char *answer, size_t n, struct cordon_buf *out)
{
	size_t lines = 0;

	while (n) {
		const char *end = memchr(answer, '\n', n);
		size_t len = end ? (size_t)(end - answer) : n, step = end ? len + 1 : n;

		if (!is_blank(answer, len)) {
			json_auto_t *line = json_loadb(answer, len, 0, NULL);
			const char *text = message_of(line);

			if (!json_is_object(line))
				return false;
			if (text && (cordon_buf_adds(out, text) < 0 || cordon_buf_addc(out, '\n') < 0))
				return false;
			lines++;
		}
		answer += step;
		n -= step;
	}
	return lines;
}

/* ---- envelopes ---- */

static int take_envelopes(const char *text, size_t n, const char *token, json_t **ret_envelope, struct cordon_error *err)
{
	json_auto_t *found = NULL;
	const char *to = NULL; /* the end mark that was found last: many beginnings before it need no second search */

	for (const char *at = text, *stop = text + n;;) {
		const char *from = memmem(at, (size_t)(stop - at), begin_mark, sizeof(begin_mark) - 1);
		json_auto_t *envelope = NULL;
		const char *given;

		if (!from)
			break;
		from += sizeof(begin_mark) - 1;
		if (!to || to < from)
			to = memmem(from, (size_t)(stop - from), end_mark, sizeof(end_mark) - 1);
		at = from;
		if (!to)
			break;
		envelope = json_loadb(from, (size_t)(to - from), JSON_REJECT_DUPLICATES, NULL);
		given = cordon_json_string(envelope, "token");
		if (!given || !cordon_streq(given, token))
			continue;
		if (found)
			return cordon_fail(err, -EINVAL, CORDON_KIND_CONFIG, "the answer has more than one result");
		found = json_incref(envelope);
		at = to + sizeof(end_mark) - 1;
	}
	*ret_envelope = cordon_steal_ptr(&found);
	return 0;
}

int cordon_envelope_find(const char *answer, size_t n, const char *token, json_t **ret_envelope,
			 struct cordon_error *err)
{
	autobuf struct cordon_buf messages = CORDON_BUF(2 * CORDON_ENVELOPE_MAX);
	bool lines = take_lines(answer, n, &messages);

	return lines ? take_envelopes(messages.data ? messages.data : "", messages.len, token, ret_envelope, err)
		     : take_envelopes(answer, n, token, ret_envelope, err);
}
