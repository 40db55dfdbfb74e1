/* SPDX-License-Identifier: Apache-2.0 */
/* recipe-table: prints the table of settings of a run as JSON while cordon is built, for src/mcp/embed.py and
 * man/settings.py. */
#include <stdio.h>

#include "config/recipe_table.h"

static json_t *commands_json(unsigned int commands)
{
	static const char *const names[] = { "run",   "check",	 "learn", "loop",    "git",    "folders",
					     "modes", "section", "roots", "project", "execute" };
	json_t *list = json_array();

	for (unsigned int i = 0; i < CORDON_ARRAY_SIZE(names); i++)
		if (commands & 1U << i)
			json_array_append_new(list, json_string(names[i]));
	return list;
}

/* Bounds are not in it: whoever judges the settings of a project names all that are wrong at once. */
static json_t *schema_json(const struct cordon_recipe_row *row)
{
	json_t *words;

	if (row->type == CORDON_RECIPE_NUMBER)
		return json_pack("{s:s}", "type", "integer");
	if (row->type == CORDON_RECIPE_FLAG)
		return json_pack("{s:s, s:b}", "type", "boolean", "default", 0);
	words = json_pack("[s]", "default");
	for (const char *p = row->option.meta; *p; p += strcspn(p, "|"), p += *p == '|')
		json_array_append_new(words, json_stringn(p, strcspn(p, "|")));
	return json_pack("{s:s, s:o, s:s}", "type", "string", "enum", words, "default", "default");
}

static const char *type_name(const struct cordon_recipe_row *row)
{
	return row->type == CORDON_RECIPE_FLAG	   ? "boolean"
	       : row->type == CORDON_RECIPE_NUMBER ? "number"
						   : row->option.meta;
}

int main(void)
{
	json_auto_t *rows = json_array();

	for (size_t i = 0; i < CORDON_RECIPE__MAX; i++) {
		const struct cordon_recipe_row *row = &cordon_recipe_rows[i];
		const struct cordon_option *option = &row->option;

		json_array_append_new(rows, json_pack("{s:s?, s:s?, s:s?, s:s?, s:s?, s:b, s:s?, s:s?, s:o, s:o*}",
						      "option", option->name, "meta", option->meta, "help",
						      option->help, "type", type_name(row), "key", row->key, "limit",
						      row->limit, "agent", row->agent, "project", row->project,
						      "commands", commands_json(row->commands), "schema",
						      row->project ? schema_json(row) : NULL));
	}
	return json_dumpf(rows, stdout, JSON_INDENT(1)) < 0 || puts("") < 0 || fflush(stdout) != 0;
}
