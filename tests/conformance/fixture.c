/* SPDX-License-Identifier: Apache-2.0 */
/* A server with the tools, resources and prompts of the official conformance suite, on our MCP core; speaks
 * stdio, or HTTP with the argument "127.0.0.1:PORT". */
#include <stdio.h>
#include <unistd.h>

#include "fixture.h"
#include "mcp/methods.h"
#include "serve/serve.h"

#define TTL_MS 1000
#define WATCHED "test://watched-resource"
#define TEMPLATE "test://template/"

static int from_json(const char *text, const struct cordon_mcp_request *request, bool cached, json_t **ret_result)
{
	*ret_result = json_loads(text, 0, NULL);
	if (cached)
		cordon_mcp_cache(request, *ret_result, TTL_MS, "public");
	return 0;
}

static int resources_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	(void)fault;
	return from_json(
		"{\"resources\": ["
		"{\"uri\": \"test://static-text\", \"name\": \"Static text\", \"description\": \"A text\", \"mimeType\": \"text/plain\"},"
		"{\"uri\": \"test://static-binary\", \"name\": \"Static binary\", \"description\": \"An image\", \"mimeType\": \"image/png\"},"
		"{\"uri\": \"" WATCHED "\", \"name\": \"Watched\", \"description\": \"Changes with every call\"}]}",
		request, true, ret_result);
}

static int templates_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	(void)fault;
	return from_json("{\"resourceTemplates\": [{\"uriTemplate\": \"test://template/{id}/data\", \"name\": \"Template\","
			 " \"description\": \"Data by id\", \"mimeType\": \"application/json\"}]}",
			 request, true, ret_result);
}

static json_t *text_contents(const char *uri, const char *mime, json_t *text)
{
	return json_pack("{s:[{s:s, s:s, s:o}]}", "contents", "uri", uri, "mimeType", mime, "text", text);
}

static int resources_read(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const char *uri = cordon_json_string(request->params, "uri");
	const char *id = uri && strncmp(uri, TEMPLATE, strlen(TEMPLATE)) == 0 ? uri + strlen(TEMPLATE) : "";
	int n = (int)strcspn(id, "/");

	if (uri && cordon_streq(uri, "test://static-text"))
		*ret_result = text_contents(uri, "text/plain",
					    json_string("This is the content of the static text resource."));
	else if (uri && cordon_streq(uri, WATCHED))
		*ret_result = text_contents(uri, "text/plain", json_string("Watched"));
	else if (uri && cordon_streq(uri, "test://static-binary"))
		*ret_result = json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri, "mimeType", "image/png",
					"blob", PIXEL);
	else if (n && cordon_streq(id + n, "/data"))
		*ret_result = text_contents(
			uri, "application/json",
			json_sprintf("{\"id\":\"%.*s\",\"templateTest\":true,\"data\":\"Data for ID: %.*s\"}", n, id, n,
				     id));
	if (*ret_result) {
		cordon_mcp_cache(request, *ret_result, 0, "private");
		return 0;
	}
	if (uri)
		fault->data = json_pack("{s:s}", "uri", uri);
	return cordon_mcp_fail(fault, request->modern ? CORDON_MCP_INVALID_PARAMS : CORDON_MCP_OLD_NOT_FOUND,
			       "Resource not found");
}

static int prompts_list(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	(void)fault;
	return from_json(
		"{\"prompts\": [{\"name\": \"test_simple_prompt\", \"description\": \"A prompt\"},"
		"{\"name\": \"test_prompt_with_arguments\", \"description\": \"With arguments\", \"arguments\": ["
		"{\"name\": \"arg1\", \"description\": \"First\", \"required\": true},"
		"{\"name\": \"arg2\", \"description\": \"Second\", \"required\": true}]},"
		"{\"name\": \"test_prompt_with_embedded_resource\", \"description\": \"With a resource\", \"arguments\": ["
		"{\"name\": \"resourceUri\", \"description\": \"What to embed\", \"required\": true}]},"
		"{\"name\": \"test_prompt_with_image\", \"description\": \"With an image\"},"
		"{\"name\": \"test_input_required_result_prompt\", \"description\": \"Asks the person first\"}]}",
		request, true, ret_result);
}

static json_t *user_text(json_t *text)
{
	return json_pack("{s:s, s:{s:s, s:o}}", "role", "user", "content", "type", "text", "text", text);
}

static json_t *prompt_messages(struct cordon_mcp_request *request, const char *name)
{
	const json_t *args = json_object_get(request->params, "arguments");
	const char *one = cordon_json_string(args, "arg1"), *two = cordon_json_string(args, "arg2");
	const char *uri = cordon_json_string(args, "resourceUri");

	if (cordon_streq(name, "test_simple_prompt"))
		return json_pack("[o]", user_text(json_string("This is a simple prompt for testing.")));
	if (cordon_streq(name, "test_prompt_with_arguments") && one && two)
		return json_pack("[o]",
				 user_text(json_sprintf("Prompt with arguments: arg1='%s', arg2='%s'", one, two)));
	if (cordon_streq(name, "test_prompt_with_embedded_resource") && uri)
		return json_pack("[{s:s, s:{s:s, s:{s:s, s:s, s:s}}}, o]", "role", "user", "content", "type",
				 "resource", "resource", "uri", uri, "mimeType", "text/plain", "text",
				 "Embedded resource content for testing.",
				 user_text(json_string("Please process the embedded resource above.")));
	if (cordon_streq(name, "test_prompt_with_image"))
		return json_pack("[{s:s, s:{s:s, s:s, s:s}}, o]", "role", "user", "content", "type", "image", "data",
				 PIXEL, "mimeType", "image/png",
				 user_text(json_string("Please analyze the image above.")));
	return NULL;
}

static int prompts_get(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const json_t *answer = json_object_get(json_object_get(request->params, "inputResponses"), "user_context");
	const char *context = cordon_json_string(json_object_get(answer, "content"), "context");
	const char *name = cordon_json_string(request->params, "name");
	json_t *messages = name ? prompt_messages(request, name) : NULL;

	if (name && cordon_streq(name, "test_input_required_result_prompt")) {
		if (!context) {
			*ret_result = fixture_ask(
				request, name,
				"{\"user_context\": {\"method\": \"elicitation/create\", \"params\": {\"mode\": \"form\","
				" \"message\": \"What context should the prompt use?\", \"requestedSchema\": {\"type\": \"object\","
				" \"properties\": {\"context\": {\"type\": \"string\"}}, \"required\": [\"context\"]}}}}",
				0);
			return 0;
		}
		messages = json_pack("[o]", user_text(json_sprintf("With context: %s", context)));
	}
	if (!messages)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "Unknown prompt, or an argument is missing");
	*ret_result = json_pack("{s:o}", "messages", messages);
	return 0;
}

static int complete(struct cordon_mcp_request *request, json_t **ret_result, struct cordon_mcp_fault *fault)
{
	const char *prompt = cordon_json_string(json_object_get(request->params, "ref"), "name");
	const char *prefix = cordon_json_string(json_object_get(request->params, "argument"), "value");

	if (!prompt || !cordon_streq(prompt, "test_prompt_with_arguments") || !prefix)
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "nothing to complete");
	*ret_result = strncmp("testing", prefix, strlen(prefix)) == 0
			      ? json_pack("{s:{s:[s], s:i, s:b}}", "completion", "values", "testing", "total", 1,
					  "hasMore", 0)
			      : json_pack("{s:{s:[], s:i, s:b}}", "completion", "values", "total", 0, "hasMore", 0);
	return 0;
}

/* The watched resource stands for the audit, to which every call adds a line. */
static int uri_parse(const char *text, struct cordon_mcp_uri *ret_uri)
{
	if (!cordon_streq(text, WATCHED))
		return -EINVAL;
	*ret_uri = (struct cordon_mcp_uri){ .place = CORDON_MCP_AUDIT };
	return 0;
}

static int uri_text(const struct cordon_mcp_uri *uri, char *ret_text, size_t size)
{
	return uri->place == CORDON_MCP_AUDIT ? cordon_copy(ret_text, size, WATCHED, strlen(WATCHED))
					      : cordon_mcp_uri_text(uri, ret_text, size);
}

static const struct cordon_mcp_offer offer = {
	.tools = fixture_tools,
	.resources_list = resources_list,
	.templates_list = templates_list,
	.resources_read = resources_read,
	.prompts_list = prompts_list,
	.prompts_get = prompts_get,
	.complete = complete,
	.uri_parse = uri_parse,
	.uri_text = uri_text,
};

static void listening(void *data, const char *address, bool anybody)
{
	(void)data, (void)anybody;
	puts(address);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct cordon_serve_options serve = {
		.listen = { argv[argc - 1] }, .n_listen = 1, .open = true, .listening = listening
	};
	autostore struct cordon_store store = CORDON_STORE_NONE;
	struct cordon_mcp_options options = { .offer = &offer };
	struct cordon_error err = { 0 };
	struct cordon_mcp *mcp = NULL;
	int r = cordon_store_open(&store, &err);

	if (r == 0)
		r = cordon_mcp_new(&store, &options, &mcp, &err);
	if (r == 0)
		r = argc > 1 ? cordon_serve(mcp, &store, &serve, &err)
			     : cordon_mcp_stdio(mcp, STDIN_FILENO, STDOUT_FILENO, &err);
	if (r < 0)
		fprintf(stderr, "mcp_fixture: %s\n", err.message);
	cordon_mcp_free(mcp);
	return r < 0;
}
