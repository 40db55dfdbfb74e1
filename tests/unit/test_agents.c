/* SPDX-License-Identifier: Apache-2.0 */
/* The file of agents: what a changed byte does to it, and edits that must give back what they took. */
#include <stdio.h>

#include "agent/agent.h"
#include "agent/edit.h"
#include "unit.h"

static const char json[] =
	"{\n  \"agents\": [\n    {\"name\": \"a\", \"role\": \"qa\", \"scope\": {\"read\": [\"src/**\"], \"write\": [\"t/*.{a,b}\"]},\n"
	"     \"env\": {\"A\": \"1\", \"B\": 2}, \"env_pass\": [\"C\"], \"limits\": {\"pids\": 5, \"cpu\": 0.5}, \"timeout\": 100},\n"
	"    {\"name\": \"b c\", \"extends\": \"A\", \"net\": \"none\", \"command\": \"x y\", \"editor_temps\": false}\n  ]\n}\n";
static const char yaml[] =
	"# top\nagents:\n  - name: a   # one\n    scope: &s\n      - src/**\n    command: [x, \"y z\"]\n\n  # two\n  - name: b\n    scope: *s\n"
	"    instructions: |\n      several\n      lines\n# end\n";

static int parse(cordon_format format, const char *text, size_t len, size_t *ret_n)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autoagents struct cordon_agents *agents = NULL;
	int r = cordon_agents_parse("t", format, text, len, &agents, &errors);

	assert_true((r < 0) == (errors.n > 0));
	if (r == 0)
		*ret_n = agents->n;
	return r;
}

static void a_changed_byte_is_an_agent_or_an_error(void **state)
{
	static const char bytes[] = "\0\n \"'{}[]:,#&*|-\\x\xff";
	char text[sizeof(json) > sizeof(yaml) ? sizeof(json) : sizeof(yaml)];
	size_t n = 0;

	(void)state;
	for (int form = 0; form < 2; form++) {
		const char *source = form ? yaml : json;
		size_t len = strlen(source);
		cordon_format format = form ? CORDON_FORMAT_YAML_ALIASES : CORDON_FORMAT_JSON;

		assert_int_equal(parse(format, source, len, &n), 0);
		assert_int_equal(n, 2);
		for (size_t i = 0; i < len; i++) {
			for (size_t k = 0; k < sizeof(bytes) - 1; k++) {
				memcpy(text, source, len + 1);
				text[i] = bytes[k];
				(void)parse(format, text, len, &n);
			}
			(void)parse(format, source, i, &n); /* cut off */
		}
	}
}

static void edit_back_and_forth(cordon_format format, const char *text)
{
	static const struct cordon_agent_draft draft = {
		.name = "new one", .role = "qa", .patterns = "a/{b,c}/**, d", .description = "\"q\"\n"
	};
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_buf more autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct cordon_buf back autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	autoagents struct cordon_agents *agents = NULL;

	assert_int_equal(cordon_agents_edit("t", format, text, strlen(text), &draft, NULL, &more, &errors), 0);
	assert_int_equal(cordon_agents_parse("t", format, more.data, more.len, &agents, &errors), 0);
	assert_string_equal(agents->items[agents->n - 1].name, "new one");
	assert_int_equal(agents->items[agents->n - 1].write.n, 2);
	assert_string_equal(agents->items[agents->n - 1].write.items[0].text, "a/{b,c}/**");
	assert_int_equal(cordon_agents_edit("t", format, more.data, more.len, NULL, "NEW ONE", &back, &errors), 0);
	if (agents->n > 1)
		assert_string_equal(back.data, text);
}

static void what_is_added_can_be_removed_without_a_trace(void **state)
{
	static const char *const files[] = { yaml,
					     "agents: []\n",
					     "agents:\n- name: x\n  scope: [a]",
					     "agents: [{name: x, scope: [a]}] # c\n",
					     "agents:\r\n  - name: x\r\n    scope: [a]\r\n",
					     "agents:\n  - {name: x, scope: [a]}\n\n\n# end" };

	(void)state;
	edit_back_and_forth(CORDON_FORMAT_JSON, json);
	edit_back_and_forth(CORDON_FORMAT_JSON, "{\"agents\":[]}");
	edit_back_and_forth(CORDON_FORMAT_JSON, "{\"agents\":[{\"name\":\"x\",\"scope\":[\"a\"]}]}");
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(files); i++)
		if (i != 2)
			edit_back_and_forth(CORDON_FORMAT_YAML_ALIASES, files[i]);
}

static void names_have_bounds(void **state)
{
	static const struct {
		const char *name;
		int code;
	} cases[] = { { "a", 0 },	 { "A b_c.d-e", 0 }, { "", -EINVAL },  { " a", -EINVAL },
		      { "a ", -EINVAL }, { "a/b", -EINVAL }, { "ä", -EINVAL }, { "a\nb", -EINVAL } };
	char longest[CORDON_AGENT_NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cases); i++)
		assert_int_equal(cordon_agent_name_check(cases[i].name, NULL), cases[i].code);
	memset(longest, 'x', sizeof(longest));
	longest[CORDON_AGENT_NAME_MAX + 1] = '\0';
	assert_int_equal(cordon_agent_name_check(longest, NULL), -EINVAL);
	assert_int_equal(cordon_agent_name_check(longest + 1, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_changed_byte_is_an_agent_or_an_error),
		cmocka_unit_test(what_is_added_can_be_removed_without_a_trace),
		cmocka_unit_test(names_have_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
