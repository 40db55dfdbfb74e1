/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of the conformance suite: fixed contents, progress, questions of both eras, and a schema with every
 * keyword. */
#include "base/time.h"
#include "fixture.h"

#define PROGRESS_STEP_MS 260 /* the core sends at most four a second */
#define ANSWER_MS 60000
#define NO_ARGUMENTS "{\"type\": \"object\", \"additionalProperties\": false}"

#define NAME_FORM                                                                                                      \
	"{\"method\": \"elicitation/create\", \"params\": {\"mode\": \"form\", \"message\": \"What is your name?\","   \
	" \"requestedSchema\": {\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}}, \"required\": [\"name\"]}}}"
#define COLOR_FORM                                                                                                             \
	"{\"method\": \"elicitation/create\", \"params\": {\"mode\": \"form\", \"message\": \"What is your favorite color?\"," \
	" \"requestedSchema\": {\"type\": \"object\", \"properties\": {\"color\": {\"type\": \"string\"}}, \"required\": [\"color\"]}}}"
#define OK_FORM                                                                                                        \
	"{\"method\": \"elicitation/create\", \"params\": {\"mode\": \"form\", \"message\": \"Please confirm\","       \
	" \"requestedSchema\": {\"type\": \"object\", \"properties\": {\"ok\": {\"type\": \"boolean\"}}, \"required\": [\"ok\"]}}}"

/* cordon itself never asks for these, which are deprecated; a question of any kind goes the same way. */
#define SAMPLING                                                                                                        \
	"{\"method\": \"sampling/createMessage\", \"params\": {\"maxTokens\": 100, \"messages\": [{\"role\": \"user\"," \
	" \"content\": {\"type\": \"text\", \"text\": \"What is the capital of France?\"}}]}}"
#define ROOTS "{\"method\": \"roots/list\", \"params\": {}}"

typedef int tool_call(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		      struct cordon_error *err);

static json_t *text_result(const char *text)
{
	return json_pack("{s:[{s:s, s:s}]}", "content", "type", "text", "text", text);
}

/* A tool whose answer is always the same. */
#define FIXED(tool_, description_, content)                                                                            \
	static int call_##tool_(struct cordon_mcp_request *request, json_t *args, json_t **ret_result,                 \
				char **ret_text, struct cordon_error *err)                                             \
	{                                                                                                              \
		(void)request, (void)args, (void)ret_text, (void)err;                                                  \
		*ret_result = json_loads("{\"content\": [" content "]}", 0, NULL);                                     \
		return 0;                                                                                              \
	}                                                                                                              \
	static const struct cordon_mcp_tool tool_ = { .name = #tool_,                                                  \
						      .title = #tool_,                                                 \
						      .description = description_,                                     \
						      .input = NO_ARGUMENTS,                                           \
						      .read_only = true,                                               \
						      .idempotent = true,                                              \
						      .call = call_##tool_ }

FIXED(test_simple_text, "Answers with text",
      "{\"type\": \"text\", \"text\": \"This is a simple text response for testing.\"}");
FIXED(test_image_content, "Answers with an image",
      "{\"type\": \"image\", \"data\": \"" PIXEL "\", \"mimeType\": \"image/png\"}");
FIXED(test_audio_content, "Answers with a sound",
      "{\"type\": \"audio\", \"data\": \"" SILENCE "\", \"mimeType\": \"audio/wav\"}");
FIXED(test_embedded_resource, "Answers with a resource",
      "{\"type\": \"resource\", \"resource\": {\"uri\": \"test://embedded-resource\", \"mimeType\": \"text/plain\","
      " \"text\": \"This is an embedded resource content.\"}}");
FIXED(test_multiple_content_types, "Answers with text, an image and a resource",
      "{\"type\": \"text\", \"text\": \"Multiple content types test:\"},"
      "{\"type\": \"image\", \"data\": \"" PIXEL "\", \"mimeType\": \"image/png\"},"
      "{\"type\": \"resource\", \"resource\": {\"uri\": \"test://mixed-content-resource\","
      " \"mimeType\": \"application/json\", \"text\": \"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}");

FIXED(test_logging_tool, "Logs nothing, because nobody can ask for it",
      "{\"type\": \"text\", \"text\": \"Nothing was logged.\"}");

#define TOOL(tool_, description_, input_, call_)                                                                       \
	static const struct cordon_mcp_tool tool_ = {                                                                  \
		.name = #tool_, .title = #tool_, .description = description_, .input = input_, .call = call_           \
	}

static int fail(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		struct cordon_error *err)
{
	(void)request, (void)args, (void)ret_result, (void)ret_text;
	return cordon_fail(err, -EINVAL, CORDON_KIND_INTERNAL, "This tool intentionally returns an error for testing");
}

static int echo_schema(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		       struct cordon_error *err)
{
	autofree char *given = json_dumps(args, JSON_COMPACT);

	(void)request, (void)ret_text, (void)err;
	*ret_result = text_result(given);
	return 0;
}

static bool step_progress(struct cordon_mcp_call *call, int64_t now)
{
	int *step = call->state;

	cordon_mcp_call_progress(call, now, "working");
	call->due = now + PROGRESS_STEP_MS;
	if (++*step < 3)
		return false;
	cordon_mcp_send_result(&call->request, text_result("Three steps were made."));
	return true;
}

static void drop_state(struct cordon_mcp_call *call)
{
	free(call->state);
}

static int progress(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		    struct cordon_error *err)
{
	struct cordon_mcp_call *call = cordon_mcp_call_begin(request);

	(void)args, (void)ret_result, (void)ret_text;
	if (!call)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "too many calls");
	call->state = calloc(1, sizeof(int));
	call->drop = drop_state;
	call->step = step_progress;
	call->due = cordon_time_monotonic();
	return CORDON_MCP_LATER;
}

static void answered(struct cordon_mcp_call *call, const json_t *result)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	autofree char *content = json_dumps(json_object_get(result, "content"), JSON_COMPACT);

	cordon_buf_addf(&text, "Elicitation completed: action=%s, content=%s",
			result ? cordon_json_string(result, "action") : "error", content ? content : "none");
	cordon_mcp_send_result(&call->request, text_result(text.data));
}

static bool unanswered(struct cordon_mcp_call *call, int64_t now)
{
	(void)now;
	answered(call, NULL);
	return true;
}

/* The legacy era: a request of ours, and the call goes on when it is answered. */
static int elicit(struct cordon_mcp_request *request, const char *message, const char *schema, struct cordon_error *err)
{
	struct cordon_mcp_call *call;

	if (request->modern || !cordon_mcp_client_capability(request, "elicitation"))
		return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_USAGE, "the client can't be asked");
	call = cordon_mcp_call_ask(request, "elicitation/create",
				   json_pack("{s:s, s:o}", "message", message, "requestedSchema",
					     json_loads(schema, 0, NULL)));
	if (!call)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "too many calls");
	call->answered = answered;
	call->step = unanswered;
	call->due = cordon_time_monotonic() + ANSWER_MS;
	return CORDON_MCP_LATER;
}

static void sampled(struct cordon_mcp_call *call, const json_t *result)
{
	autobuf struct cordon_buf text = CORDON_BUF(65536);
	const char *said = cordon_json_string(json_object_get(result, "content"), "text");

	cordon_buf_addf(&text, "LLM response: %s", said ? said : "none");
	cordon_mcp_send_result(&call->request, text_result(text.data));
}

static bool unsampled(struct cordon_mcp_call *call, int64_t now)
{
	(void)now;
	sampled(call, NULL);
	return true;
}

static int sampling(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		    struct cordon_error *err)
{
	struct cordon_mcp_call *call;

	(void)ret_result, (void)ret_text;
	if (request->modern || !cordon_mcp_client_capability(request, "sampling"))
		return cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_USAGE, "the client has no model");
	call = cordon_mcp_call_ask(request, "sampling/createMessage",
				   json_pack("{s:[{s:s, s:{s:s, s:s}}], s:i}", "messages", "role", "user", "content",
					     "type", "text", "text", cordon_json_string(args, "prompt"), "maxTokens",
					     100));
	if (!call)
		return cordon_fail(err, -ENOMEM, CORDON_KIND_LIMIT, "too many calls");
	call->answered = sampled;
	call->step = unsampled;
	call->due = cordon_time_monotonic() + ANSWER_MS;
	return CORDON_MCP_LATER;
}

static int elicitation(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		       struct cordon_error *err)
{
	(void)ret_result, (void)ret_text;
	return elicit(request, cordon_json_string(args, "message"),
		      "{\"type\": \"object\", \"required\": [\"username\", \"email\"], \"properties\": {"
		      "\"username\": {\"type\": \"string\", \"description\": \"User's response\"},"
		      "\"email\": {\"type\": \"string\", \"description\": \"User's email address\"}}}",
		      err);
}

static int defaults(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		    struct cordon_error *err)
{
	(void)args, (void)ret_result, (void)ret_text;
	return elicit(
		request, "Please look at the defaults",
		"{\"type\": \"object\", \"properties\": {"
		"\"name\": {\"type\": \"string\", \"default\": \"John Doe\"}, \"age\": {\"type\": \"integer\", \"default\": 30},"
		"\"score\": {\"type\": \"number\", \"default\": 95.5},"
		"\"status\": {\"type\": \"string\", \"enum\": [\"active\", \"inactive\", \"pending\"], \"default\": \"active\"},"
		"\"verified\": {\"type\": \"boolean\", \"default\": true}}}",
		err);
}

static int enums(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		 struct cordon_error *err)
{
	(void)args, (void)ret_result, (void)ret_text;
	return elicit(
		request, "Please choose",
		"{\"type\": \"object\", \"properties\": {"
		"\"untitledSingle\": {\"type\": \"string\", \"enum\": [\"option1\", \"option2\", \"option3\"]},"
		"\"titledSingle\": {\"type\": \"string\", \"oneOf\": [{\"const\": \"value1\", \"title\": \"First Option\"},"
		"{\"const\": \"value2\", \"title\": \"Second Option\"}]},"
		"\"legacyEnum\": {\"type\": \"string\", \"enum\": [\"opt1\", \"opt2\"], \"enumNames\": [\"Option One\", \"Option Two\"]},"
		"\"untitledMulti\": {\"type\": \"array\", \"items\": {\"type\": \"string\", \"enum\": [\"option1\", \"option2\"]}},"
		"\"titledMulti\": {\"type\": \"array\", \"items\": {\"anyOf\": [{\"const\": \"value1\", \"title\": \"First Choice\"},"
		"{\"const\": \"value2\", \"title\": \"Second Choice\"}]}}}}",
		err);
}

/* Answers with a protocol error, which tools of ours never do by themselves. */
static int fault_out(const struct cordon_mcp_request *request, int code, const char *text, json_t *data)
{
	struct cordon_mcp_fault fault = { .data = data };

	cordon_mcp_fail(&fault, code, "%s", text);
	cordon_mcp_send_fault(request->channel, request->id, &fault);
	return CORDON_MCP_LATER;
}

static int missing_capability(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			      struct cordon_error *err)
{
	(void)args, (void)ret_text, (void)err;
	if (!cordon_mcp_client_capability(request, "sampling"))
		return fault_out(request, CORDON_MCP_MISSING_CAPABILITY, "sampling is needed",
				 json_pack("{s:{s:{}}}", "requiredCapabilities", "sampling"));
	*ret_result = text_result("The capability was declared.");
	return 0;
}

json_t *fixture_ask(const struct cordon_mcp_request *request, const char *name, const char *requests, int step)
{
	json_auto_t *about = json_pack("{s:i}", "step", step);
	json_t *result = json_pack("{s:s, s:o}", "resultType", "input_required", "inputRequests",
				   json_loads(requests, 0, NULL));
	char state[CORDON_MCP_STATE_SIZE];

	if (step && cordon_mcp_state_make(request, name, about, state) == 0)
		json_object_set_new(result, "requestState", json_string(state));
	return result;
}

static bool holds(const struct cordon_mcp_request *request, const char *name, int step)
{
	json_auto_t *about = json_pack("{s:i}", "step", step);
	const char *state = cordon_json_string(request->params, "requestState");

	return state && cordon_mcp_state_holds(request, name, about, state);
}

/* What was answered to a form, or NULL. */
static const char *field(const struct cordon_mcp_request *request, const char *key, const char *name)
{
	const json_t *answer = json_object_get(json_object_get(request->params, "inputResponses"), key);
	const char *action = cordon_json_string(answer, "action");

	return action && cordon_streq(action, "accept") ? cordon_json_string(json_object_get(answer, "content"), name)
							: NULL;
}

static int ask_name(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		    struct cordon_error *err)
{
	const char *name = field(request, "user_name", "name");
	autobuf struct cordon_buf text = CORDON_BUF(4096);

	(void)args, (void)ret_text, (void)err;
	if (!name || cordon_buf_addf(&text, "Hello, %s!", name) < 0) {
		*ret_result = fixture_ask(request, "", "{\"user_name\": " NAME_FORM "}", 0);
		return 0;
	}
	*ret_result = text_result(text.data);
	return 0;
}

/* One round with a state that only this server can have made. */
static int ask_with_state(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			  struct cordon_error *err)
{
	const char *name = cordon_json_string(request->params, "name");

	(void)args, (void)ret_text, (void)err;
	if (json_object_get(request->params, "requestState") && !holds(request, name, 1))
		return fault_out(request, CORDON_MCP_INVALID_PARAMS, "requestState is not valid", NULL);
	if (holds(request, name, 1) && json_object_get(json_object_get(request->params, "inputResponses"), "confirm"))
		*ret_result = text_result("state-ok");
	else
		*ret_result = fixture_ask(request, name, "{\"confirm\": " OK_FORM "}", 1);
	return 0;
}

static int ask_twice(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		     struct cordon_error *err)
{
	static const char name[] = "multi_round";

	(void)args, (void)ret_text, (void)err;
	if (holds(request, name, 2) && field(request, "step2", "color"))
		*ret_result = text_result("Both steps were made.");
	else if (holds(request, name, 1) && field(request, "step1", "name"))
		*ret_result = fixture_ask(request, name, "{\"step2\": " COLOR_FORM "}", 2);
	else
		*ret_result = fixture_ask(request, name, "{\"step1\": " NAME_FORM "}", 1);
	return 0;
}

static bool has_answer(const struct cordon_mcp_request *request, const char *key)
{
	return json_is_object(json_object_get(json_object_get(request->params, "inputResponses"), key));
}

/* Several questions at once; only an answer to all of them is one. */
static int ask_several(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		       struct cordon_error *err)
{
	static const char name[] = "multiple_inputs";

	(void)args, (void)ret_text, (void)err;
	if (holds(request, name, 1) && field(request, "user_name", "name") && has_answer(request, "greeting") &&
	    has_answer(request, "roots"))
		*ret_result = text_result("Everything was answered.");
	else
		*ret_result = fixture_ask(request, name,
					  "{\"user_name\": " NAME_FORM ", \"greeting\": " SAMPLING ", \"roots\": " ROOTS
					  "}",
					  1);
	return 0;
}

static int ask_model(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		     struct cordon_error *err)
{
	(void)args, (void)ret_text, (void)err;
	*ret_result = has_answer(request, "capital") ? text_result("The model answered.")
						     : fixture_ask(request, "", "{\"capital\": " SAMPLING "}", 0);
	return 0;
}

static int ask_roots(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
		     struct cordon_error *err)
{
	(void)args, (void)ret_text, (void)err;
	*ret_result = has_answer(request, "roots") ? text_result("The roots are known.")
						   : fixture_ask(request, "", "{\"roots\": " ROOTS "}", 0);
	return 0;
}

/* Asks only what the client said that it can answer. */
static int ask_if_possible(struct cordon_mcp_request *request, json_t *args, json_t **ret_result, char **ret_text,
			   struct cordon_error *err)
{
	(void)args, (void)ret_text, (void)err;
	if (cordon_mcp_client_capability(request, "elicitation"))
		*ret_result = fixture_ask(request, "", "{\"user_name\": " NAME_FORM "}", 0);
	else if (cordon_mcp_client_capability(request, "sampling"))
		*ret_result = fixture_ask(request, "", "{\"capital\": " SAMPLING "}", 0);
	else
		*ret_result = text_result("The client can answer nothing that this server asks.");
	return 0;
}

TOOL(test_error_handling, "Always fails", NO_ARGUMENTS, fail);
TOOL(test_tool_with_progress, "Tells how far it is", NO_ARGUMENTS, progress);
TOOL(test_sampling, "Asks the client's model",
     "{\"type\": \"object\", \"required\": [\"prompt\"], \"properties\": {\"prompt\": {\"type\": \"string\"}}}",
     sampling);
TOOL(test_elicitation, "Asks the person",
     "{\"type\": \"object\", \"required\": [\"message\"], \"properties\": {\"message\": {\"type\": \"string\"}}}",
     elicitation);
TOOL(test_elicitation_sep1034_defaults, "Asks with defaults", NO_ARGUMENTS, defaults);
TOOL(test_elicitation_sep1330_enums, "Asks with choices", NO_ARGUMENTS, enums);
TOOL(test_missing_capability, "Needs a capability of the client", NO_ARGUMENTS, missing_capability);
TOOL(test_input_required_result_elicitation, "Asks for a name", NO_ARGUMENTS, ask_name);
TOOL(test_input_required_result_request_state, "Asks, with a state", NO_ARGUMENTS, ask_with_state);
TOOL(test_input_required_result_tampered_state, "Asks, with a state", NO_ARGUMENTS, ask_with_state);
TOOL(test_input_required_result_multi_round, "Asks twice", NO_ARGUMENTS, ask_twice);
TOOL(test_input_required_result_multiple_inputs, "Asks three things at once", NO_ARGUMENTS, ask_several);
TOOL(test_input_required_result_sampling, "Asks a model", NO_ARGUMENTS, ask_model);
TOOL(test_input_required_result_list_roots, "Asks for the roots", NO_ARGUMENTS, ask_roots);
TOOL(test_streaming_elicitation, "Asks for a name", NO_ARGUMENTS, ask_name);
TOOL(test_input_required_result_capabilities, "Asks what the client can answer", NO_ARGUMENTS, ask_if_possible);
TOOL(json_schema_2020_12_tool, "Tool with JSON Schema 2020-12 features",
     "{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"type\": \"object\", \"$defs\": {\"address\": {"
     "\"$anchor\": \"addressDef\", \"type\": \"object\", \"properties\": {\"street\": {\"type\": \"string\"},"
     "\"city\": {\"type\": \"string\"}}}}, \"properties\": {\"name\": {\"type\": \"string\"},"
     "\"address\": {\"$ref\": \"#/$defs/address\"},"
     "\"contactMethod\": {\"type\": \"string\", \"enum\": [\"phone\", \"email\"]}, \"phone\": {\"type\": \"string\"},"
     "\"email\": {\"type\": \"string\"}}, \"allOf\": [{\"anyOf\": [{\"required\": [\"phone\"]}, {\"required\": [\"email\"]}]}],"
     "\"if\": {\"properties\": {\"contactMethod\": {\"const\": \"phone\"}}, \"required\": [\"contactMethod\"]},"
     "\"then\": {\"required\": [\"phone\"]}, \"else\": {\"required\": [\"email\"]}, \"additionalProperties\": false}",
     echo_schema);

const struct cordon_mcp_tool *const fixture_tools[] = {
	&test_simple_text,
	&test_image_content,
	&test_audio_content,
	&test_embedded_resource,
	&test_multiple_content_types,
	&test_error_handling,
	&test_tool_with_progress,
	&test_sampling,
	&test_elicitation,
	&test_elicitation_sep1034_defaults,
	&test_elicitation_sep1330_enums,
	&test_missing_capability,
	&test_input_required_result_elicitation,
	&test_input_required_result_request_state,
	&test_input_required_result_tampered_state,
	&test_input_required_result_multi_round,
	&test_input_required_result_multiple_inputs,
	&test_input_required_result_sampling,
	&test_input_required_result_list_roots,
	&test_input_required_result_capabilities,
	&test_streaming_elicitation,
	&test_logging_tool,
	&json_schema_2020_12_tool,
	NULL,
};
