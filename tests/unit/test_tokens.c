/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and what they allow: every tool has a line in the table of scopes. */
#include <sodium.h>
#include <stdlib.h>

#include "mcp/internal.h"
#include "project/token.h"
#include "unit.h"

static void every_tool_has_a_scope(void **state)
{
	cordon_token_scope scope;

	(void)state;
	for (size_t i = 0; cordon_mcp_tools[i]; i++)
		if (cordon_mcp_scope_of(cordon_mcp_tools[i]->name, &scope) < 0)
			fail_msg("%s has no line in the table of src/mcp/scope.c", cordon_mcp_tools[i]->name);
}

/* A tool that only reads is for readers, and no other is. */
static void scopes_fit_what_tools_say_about_themselves(void **state)
{
	cordon_token_scope scope = CORDON_SCOPE_ADMIN;

	(void)state;
	for (size_t i = 0; cordon_mcp_tools[i]; i++) {
		assert_int_equal(cordon_mcp_scope_of(cordon_mcp_tools[i]->name, &scope), 0);
		if ((scope == CORDON_SCOPE_READ) != cordon_mcp_tools[i]->read_only)
			fail_msg("%s is of the wrong scope", cordon_mcp_tools[i]->name);
	}
}

static void a_tool_without_a_line_is_for_nobody(void **state)
{
	struct cordon_mcp_grant grant = { .scope = CORDON_SCOPE_ADMIN };
	struct cordon_mcp_channel channel = { .grant = &grant };

	(void)state;
	assert_true(cordon_mcp_scope_shows(&channel, "project_delete"));
	assert_false(cordon_mcp_scope_shows(&channel, "no_such_tool"));
	channel.grant = NULL;
	assert_true(cordon_mcp_scope_shows(&channel, "no_such_tool"));
}

static void scopes_are_read(void **state)
{
	static const struct {
		const char *text, *project;
		int r;
		cordon_token_scope scope;
	} cases[] = {
		{ "read", NULL, 0, CORDON_SCOPE_READ },
		{ "run", NULL, 0, CORDON_SCOPE_RUN },
		{ "admin", NULL, 0, CORDON_SCOPE_ADMIN },
		{ "admin:ro", NULL, 0, CORDON_SCOPE_READ },
		{ "project:x", "x", 0, CORDON_SCOPE_RUN },
		{ "project:x:ro", "x", 0, CORDON_SCOPE_READ },
		{ "project:", NULL, -EINVAL, 0 },
		{ "project::ro", NULL, -EINVAL, 0 },
		{ "run:ro", NULL, -EINVAL, 0 },
		{ "", NULL, -EINVAL, 0 },
		{ "Admin", NULL, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++) {
		autofree char *project = NULL;
		cordon_token_scope scope;

		assert_int_equal(cordon_token_scope_parse(cases[i].text, &scope, &project, NULL), cases[i].r);
		if (cases[i].r < 0)
			continue;
		assert_int_equal(scope, cases[i].scope);
		assert_int_equal(project != NULL, cases[i].project != NULL);
		if (project)
			assert_string_equal(project, cases[i].project);
	}
}

static void only_the_token_itself_is_found(void **state)
{
	struct cordon_token_record records[2] = { { .id = "one" },
						  { .id = "two", .expires_at = "2020-01-01T00:00:00.000Z" } };
	struct cordon_tokens tokens = { .items = records, .n = 2 };
	static const char *const texts[] = { "cordon_a", "cordon_b" };
	unsigned char hash[crypto_hash_sha256_BYTES];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		crypto_hash_sha256(hash, (const unsigned char *)texts[i], strlen(texts[i]));
		sodium_bin2hex(records[i].hash, sizeof(records[i].hash), hash, sizeof(hash));
	}
	assert_ptr_equal(cordon_tokens_find(&tokens, "cordon_a", 0), &records[0]);
	assert_null(cordon_tokens_find(&tokens, "cordon_A", 0));
	assert_null(cordon_tokens_find(&tokens, "", 0));
	assert_null(cordon_tokens_find(&tokens, records[0].hash, 0));
	/* The second has expired, but not in 1970. */
	assert_ptr_equal(cordon_tokens_find(&tokens, "cordon_b", 0), &records[1]);
	assert_null(cordon_tokens_find(&tokens, "cordon_b", INT64_MAX));
	memcpy(records[0].expires_at, "damaged", 8);
	assert_null(cordon_tokens_find(&tokens, "cordon_a", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tool_has_a_scope),
		cmocka_unit_test(scopes_fit_what_tools_say_about_themselves),
		cmocka_unit_test(a_tool_without_a_line_is_for_nobody),
		cmocka_unit_test(scopes_are_read),
		cmocka_unit_test(only_the_token_itself_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
