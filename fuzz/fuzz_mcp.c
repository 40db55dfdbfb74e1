/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the MCP dispatcher: each line of the input is a message on one channel; every answer must be valid. */
#include <assert.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PLACEHOLDER "11111111-1111-4111-8111-111111111111" /* in an input, stands for a project that exists */
#define TOOLS_MAX 32
#define RESET_AFTER 500 /* inputs until the store is made anew, because some inputs add to it */

static struct cordon_store store = CORDON_STORE_NONE;
static struct cordon_mcp *mcp;
static char home[64], project[CORDON_ID_SIZE];
static unsigned int inputs;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static void close_all(void)
{
	mcp = cordon_mcp_free(mcp);
	cordon_store_done(&store);
	store = (struct cordon_store)CORDON_STORE_NONE;
	if (*home)
		nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	*home = '\0';
}

/* Offers all tools except those that start programs, which a fuzzer must not do. */
static const struct cordon_mcp_offer *harmless_offer(void)
{
	static const struct cordon_mcp_tool *tools[TOOLS_MAX];
	static struct cordon_mcp_offer offer;
	size_t n = 0;

	for (size_t i = 0; cordon_mcp_tools[i] && n < TOOLS_MAX - 1; i++)
		if (!cordon_streq(cordon_mcp_tools[i]->name, "session_start") &&
		    !cordon_streq(cordon_mcp_tools[i]->name, "session_send"))
			tools[n++] = cordon_mcp_tools[i];
	offer = cordon_mcp_own_offer;
	offer.tools = tools;
	return &offer;
}

static void open_all(void)
{
	struct cordon_mcp_options options = { .offer = harmless_offer() };
	json_auto_t *settings = json_pack("{s:s, s:b}", "name", "p", "init_git", 0);
	struct cordon_project_record made = { 0 };

	snprintf(home, sizeof(home), "%s/cordon-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(home) || setenv("CORDON_HOME", home, 1) < 0 || cordon_store_open(&store, NULL) < 0 ||
	    cordon_project_create(&store, settings, NULL, &made, NULL) < 0 ||
	    cordon_mcp_new(&store, &options, &mcp, NULL) < 0)
		abort();
	snprintf(project, sizeof(project), "%s", made.id);
	cordon_project_record_done(&made);
}

static void check_answer(struct cordon_mcp_channel *channel, const json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);
	const json_t *error = json_object_get(message, "error");
	const json_t *result = json_object_get(message, "result");

	(void)channel;
	assert(text && !strchr(text, '\n'));
	assert(cordon_streq(json_string_value(json_object_get(message, "jsonrpc")), "2.0"));
	if (json_object_get(message, "method"))
		assert(!error && !result);
	else
		assert(json_is_object(result) != json_is_object(error));
	if (error)
		assert(json_is_integer(json_object_get(error, "code")) &&
		       json_is_string(json_object_get(error, "message")));
	free(text);
}

static void put_project(char *text)
{
	while ((text = strstr(text, PLACEHOLDER)))
		memcpy(text, project, strlen(PLACEHOLDER));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cordon_mcp_channel channel = { .send = check_answer };
	char *text, *at, *end;

	if (inputs++ % RESET_AFTER == 0) {
		if (!*home)
			atexit(close_all);
		close_all();
		open_all();
	}
	text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	put_project(text);
	for (at = text; at < text + size; at = end + 1) {
		end = memchr(at, '\n', (size_t)(text + size - at));
		end = end ? end : text + size;
		cordon_mcp_message(mcp, &channel, at, (size_t)(end - at));
	}
	cordon_mcp_work(mcp);
	cordon_mcp_close_channel(mcp, &channel, true);
	free(text);
	return 0;
}
