/* SPDX-License-Identifier: Apache-2.0 */
/* Receives and sends messages: JSON-RPC, the era of a request, and the order in which bad requests are rejected. */
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "base/time.h"
#include "mcp/internal.h"
#include "mcp/methods.h"

int cordon_mcp_fail(struct cordon_mcp_fault *fault, int code, const char *fmt, ...)
{
	char text[sizeof(fault->message)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fault->code = code;
	cordon_text_escape_fixed(fault->message, sizeof(fault->message), text, strlen(text));
	return -EPROTO;
}

static void send_and_drop(struct cordon_mcp_channel *channel, json_t *message)
{
	if (message)
		channel->send(channel, message);
	json_decref(message);
}

void cordon_mcp_notify(struct cordon_mcp_channel *channel, const char *method, json_t *params)
{
	send_and_drop(channel, json_pack("{s:s, s:s, s:o*}", "jsonrpc", "2.0", "method", method, "params", params));
}

void cordon_mcp_send_fault(struct cordon_mcp_channel *channel, json_t *id, struct cordon_mcp_fault *fault)
{
	/* If the id can't be read, the answer has none: both schemas forbid null. */
	send_and_drop(channel, json_pack("{s:s, s:O*, s:{s:i, s:s, s:o*}}", "jsonrpc", "2.0", "id", id, "error", "code",
					 fault->code, "message", fault->message, "data", fault->data));
	fault->data = NULL;
}

/* A modern result has fields for completeness and for the server; a legacy result has not. */
static void put_envelope(const struct cordon_mcp_request *request, json_t *result)
{
	json_t *meta = json_object_get(result, "_meta");

	if (!request->modern)
		return;
	if (!json_object_get(result, "resultType"))
		json_object_set_new(result, "resultType", json_string("complete"));
	if (!meta) {
		meta = json_object();
		json_object_set_new(result, "_meta", meta);
	}
	json_object_set_new(meta, CORDON_META_SERVER, cordon_mcp_server_info());
}

void cordon_mcp_send_result(const struct cordon_mcp_request *request, json_t *result)
{
	if (!result)
		return;
	put_envelope(request, result);
	send_and_drop(request->channel,
		      json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", request->id, "result", result));
}

json_t *cordon_mcp_client_capability(const struct cordon_mcp_request *request, const char *name)
{
	json_t *all = request->modern ? json_object_get(request->meta, CORDON_META_CAPABILITIES)
				      : request->channel->capabilities;

	return json_object_get(all, name);
}

static bool valid_id(const json_t *id)
{
	return json_is_string(id) || json_is_integer(id);
}

/* In the modern era the version is checked first, then the rest of _meta, then the method. */
static int check_modern(struct cordon_mcp_request *request, struct cordon_mcp_fault *fault)
{
	static const char *const levels[] = { "debug", "info",	   "notice", "warning",
					      "error", "critical", "alert",  "emergency" };
	const json_t *version = json_object_get(request->meta, CORDON_META_VERSION);
	const json_t *level = json_object_get(request->meta, CORDON_META_LOG_LEVEL);
	json_t *answers = json_object_get(request->params, "inputResponses");
	const char *key;
	json_t *answer;
	size_t i = 0;

	if (version && !json_is_string(version))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "_meta[\"%s\"] must be a string",
				       CORDON_META_VERSION);
	if (version && !cordon_streq(json_string_value(version), CORDON_MCP_MODERN)) {
		fault->data = json_pack("{s:o, s:O}", "supported", cordon_mcp_versions(), "requested", version);
		return cordon_mcp_fail(fault, CORDON_MCP_UNSUPPORTED_VERSION, "Unsupported protocol version");
	}
	if (!version)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "_meta lacks \"%s\"", CORDON_META_VERSION);
	if (!json_is_object(json_object_get(request->meta, CORDON_META_CAPABILITIES)))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "_meta lacks \"%s\"", CORDON_META_CAPABILITIES);
	if (answers && !json_is_object(answers))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "inputResponses must be an object");
	json_object_foreach(answers, key, answer) {
		if (!json_is_object(answer))
			return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS,
					       "inputResponses.%.80s must be an object", key);
	}
	while (json_is_string(level) && i < CORDON_ARRAY_SIZE(levels) &&
	       !cordon_streq(levels[i], json_string_value(level)))
		i++;
	if (level && (!json_is_string(level) || i == CORDON_ARRAY_SIZE(levels)))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "_meta[\"%s\"] is no log level",
				       CORDON_META_LOG_LEVEL);
	return 0;
}

/* Returns the value of a header without blanks around it. It may be written as =?base64?...?=, which clients do for what is not
 * plain ASCII. */
static char *header_value(const char *text)
{
	static const char begin[] = "=?base64?", end[] = "?=";
	size_t n, size = 0;
	char *plain;

	text += strspn(text, " \t");
	n = strlen(text);
	while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
		n--;
	if (n < sizeof(begin) + sizeof(end) - 2 || strncmp(text, begin, sizeof(begin) - 1) != 0 ||
	    strncmp(text + n - (sizeof(end) - 1), end, sizeof(end) - 1) != 0)
		return strndup(text, n);
	text += sizeof(begin) - 1;
	n -= sizeof(begin) + sizeof(end) - 2;
	plain = malloc(n + 1);
	if (!plain)
		return NULL;
	/* What can't be decoded equals no name. */
	if (sodium_base642bin((unsigned char *)plain, n, text, n, NULL, &size, NULL, sodium_base64_VARIANT_ORIGINAL) < 0)
		size = 0;
	plain[size] = '\0';
	return plain;
}

/* Whether a header says the same as the body. */
static bool header_fits(const char *given, const char *said)
{
	autofree char *value = given ? header_value(given) : NULL;

	return value && cordon_streq(value, said);
}

/* What the headers of a modern request say, the body must say too. */
static int check_headers(const struct cordon_mcp_request *request, struct cordon_mcp_fault *fault)
{
	const struct cordon_mcp_headers *headers = request->channel->headers;
	const char *version = cordon_json_string(request->meta, CORDON_META_VERSION);
	bool by_uri = cordon_streq(request->method, "resources/read");
	bool named = by_uri || cordon_streq(request->method, "tools/call") ||
		     cordon_streq(request->method, "prompts/get");
	const char *name = cordon_json_string(request->params, by_uri ? "uri" : "name");
	const char *wrong = NULL;

	if (!headers)
		return 0;
	if (!header_fits(headers->method, request->method))
		wrong = "Mcp-Method";
	else if (named && name && !header_fits(headers->name, name))
		wrong = "Mcp-Name";
	else if (version && !header_fits(headers->version, version))
		wrong = "MCP-Protocol-Version";
	if (!wrong)
		return 0;
	return cordon_mcp_fail(fault, CORDON_MCP_HEADER_MISMATCH, "the header %s is missing or does not fit the body",
			       wrong);
}

static int check_legacy(const struct cordon_mcp_request *request, struct cordon_mcp_fault *fault)
{
	if (request->channel->initialized || cordon_streq(request->method, "initialize") ||
	    cordon_streq(request->method, "ping"))
		return 0;
	return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS,
			       "_meta lacks \"%s\", and there was no initialize: use protocol %s, or begin with initialize",
			       CORDON_META_VERSION, CORDON_MCP_MODERN);
}

static int serve(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const struct cordon_mcp_method *method;
	const json_t *token = json_object_get(request->meta, "progressToken");
	int r = request->modern ? check_headers(request, fault) : check_legacy(request, fault);

	if (r == 0 && request->modern)
		r = check_modern(request, fault);
	if (r < 0) {
		request->channel->malformed = true;
		return r;
	}
	method = cordon_mcp_method_find(request->method, request->modern);
	if (!method)
		return cordon_mcp_fail(fault, CORDON_MCP_METHOD_NOT_FOUND, "Method not found: %.100s", request->method);
	if (token && !valid_id(token))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "progressToken must be a string or an integer");
	if (cordon_mcp_call_find(request->mcp, request->channel, request->id) ||
	    cordon_mcp_listen_has(request->mcp, request->channel, request->id))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_REQUEST,
				       "a request with this id is still being served");
	return method->serve(request, ret_result, fault);
}

bool cordon_mcp_is_modern(const json_t *message, const struct cordon_mcp_headers *headers)
{
	const json_t *meta = json_object_get(json_object_get(message, "params"), "_meta");

	/* Versions are dates. */
	return json_object_get(meta, CORDON_META_VERSION) || cordon_json_is(message, "method", "server/discover") ||
	       (headers && headers->version && strcmp(headers->version, CORDON_MCP_MODERN) >= 0);
}

static void handle_request(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, json_t *message, json_t *id)
{
	json_auto_t *nothing = json_object();
	json_t *params = json_object_get(message, "params");
	json_t *meta = json_object_get(params, "_meta");
	struct cordon_mcp_request request = {
		.mcp = mcp,
		.channel = channel,
		.id = id,
		.method = cordon_json_string(message, "method"),
		.params = params ? params : nothing,
		.meta = meta ? meta : nothing,
		.began = cordon_time_monotonic(),
	};
	struct cordon_mcp_fault fault = { 0 };
	json_t *result = NULL;
	int r;

	if (!json_is_object(request.params) || !json_is_object(request.meta)) {
		r = cordon_mcp_fail(&fault, CORDON_MCP_INVALID_PARAMS, "%s must be an object",
				    json_is_object(request.params) ? "_meta" : "params");
	} else {
		request.modern = cordon_mcp_is_modern(message, channel->headers);
		r = serve(&request, &result, &fault);
	}
	if (r < 0)
		cordon_mcp_send_fault(channel, id, &fault);
	else if (r == 0)
		cordon_mcp_send_result(&request, result);
}

/* A notification is never answered, whatever is wrong with it. */
static void handle_notification(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, const json_t *message)
{
	const char *method = cordon_json_string(message, "method");
	const json_t *id = json_object_get(json_object_get(message, "params"), "requestId");

	/* A client of HTTP hears of it on a stream that it opens. */
	if (cordon_streq(method, "notifications/initialized") && channel->initialized && !channel->session)
		cordon_mcp_listen_lists(mcp, channel);
	if (!cordon_streq(method, "notifications/cancelled") || !valid_id(id))
		return;
	cordon_mcp_call_cancel(mcp, channel, id);
	cordon_mcp_listen_cancel(mcp, channel, id);
}

static void invalid(struct cordon_mcp_channel *channel, json_t *id, const char *why)
{
	struct cordon_mcp_fault fault = { 0 };

	cordon_mcp_fail(&fault, CORDON_MCP_INVALID_REQUEST, "Invalid request: %s", why);
	cordon_mcp_send_fault(channel, valid_id(id) ? id : NULL, &fault);
}

void cordon_mcp_take(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, json_t *message, const char *why)
{
	json_t *id = json_object_get(message, "id");
	const json_t *method = json_object_get(message, "method");
	const char *version = cordon_json_string(message, "jsonrpc");
	struct cordon_mcp_fault fault = { 0 };

	if (!message) {
		cordon_mcp_fail(&fault, CORDON_MCP_PARSE_ERROR, "Parse error: %s", why);
		cordon_mcp_send_fault(channel, NULL, &fault);
	} else if (json_is_array(message)) {
		invalid(channel, NULL, "batches are not supported");
	} else if (!version || !cordon_streq(version, "2.0")) {
		invalid(channel, id, "jsonrpc must be \"2.0\"");
	} else if (!method && valid_id(id) && (json_object_get(message, "result") || json_object_get(message, "error"))) {
		cordon_mcp_calls_answered(mcp, channel, id, json_object_get(message, "result"));
	} else if (!json_is_string(method)) {
		invalid(channel, id, "method must be a string");
	} else if (!id) {
		handle_notification(mcp, channel, message);
	} else if (!valid_id(id)) {
		invalid(channel, id, "id must be a string or an integer");
	} else {
		handle_request(mcp, channel, message, id);
	}
}

/*
 * Whether the text has few enough values, and none too deep. Each of them takes many times its bytes in memory, so this is counted before
 * the text is parsed: there are at most as many values as commas and opening brackets, and one more.
 */
static bool is_bounded(const char *text, size_t n)
{
	size_t values = 1, depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (quoted) {
			i += c == '\\';
			quoted = c != '"';
		} else if (c == '"') {
			quoted = true;
		} else if (c == '[' || c == '{') {
			values++;
			depth++;
		} else if (c == ',') {
			values++;
		} else if ((c == ']' || c == '}') && depth) {
			depth--;
		}
		if (values > CORDON_MCP_VALUES_MAX || depth > CORDON_MCP_DEPTH_MAX)
			return false;
	}
	return true;
}

json_t *cordon_mcp_parse(const char *text, size_t n, json_error_t *ret_where)
{
	if (is_bounded(text, n))
		return json_loadb(text, n, JSON_REJECT_DUPLICATES, ret_where);
	*ret_where = (json_error_t){ .line = -1, .column = -1 };
	snprintf(ret_where->text, sizeof(ret_where->text), "more than %d values, or more than %d levels",
		 CORDON_MCP_VALUES_MAX, CORDON_MCP_DEPTH_MAX);
	return NULL;
}

void cordon_mcp_message(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel, const char *text, size_t n)
{
	json_error_t where;
	json_auto_t *message = cordon_mcp_parse(text, n, &where);

	cordon_mcp_take(mcp, channel, message, where.text);
}

void cordon_mcp_too_long(struct cordon_mcp *mcp, struct cordon_mcp_channel *channel)
{
	struct cordon_mcp_fault fault = { 0 };

	(void)mcp;
	cordon_mcp_fail(&fault, CORDON_MCP_PARSE_ERROR, "Parse error: a message has at most %zu bytes",
			CORDON_MCP_MESSAGE_MAX);
	cordon_mcp_send_fault(channel, NULL, &fault);
}
