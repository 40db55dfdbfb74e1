/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of key=value, for commands about orchestrators, shared areas and channel profiles. */
#include <stdio.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/pairs.h"

#define VALUE_MAX 65536

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	struct cordon_pairs_args *args = data;
	size_t text = (size_t)(key - CORDON_KEY_TEXT(0));

	(void)err;
	if (key == CORDON_KEY_CONFIG)
		args->config = arg;
	else if (key == CORDON_KEY_TABLE)
		args->table = true;
	else if (key >= CORDON_KEY_FLAG(0))
		args->flag[key - CORDON_KEY_FLAG(0)] = true;
	else if (text < CORDON_ARRAY_SIZE(args->text))
		args->text[text] = arg;
	return 0;
}

bool cordon_cli_begin(struct cordon_cli *cli, int argc, char **argv, int n, struct cordon_pairs_args *ret_args,
		      int *ret_exit)
{
	struct cordon_error err = { 0 };
	int first, r;

	*ret_args = (struct cordon_pairs_args){ 0 };
	r = cordon_cli_parse(cli, argc, argv, 0, set, ret_args, &first, &err);
	if (r != 0)
		*ret_exit = r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	else if (argc - first > n)
		*ret_exit = cordon_cli_usage(cli, "unexpected argument: %s", argv[first + n]);
	else if (argc - first < n)
		*ret_exit = cordon_cli_usage(cli, "%s is expected", cli->command->operands);
	if (r != 0 || argc - first != n)
		return false;
	for (int i = 0; i < n; i++)
		ret_args->operands[i] = argv[first + i];
	return true;
}

/* A grant in a list is "docs" or "docs:ro", and a run its id. */
static int add_item(struct cordon_buf *text, const json_t *item)
{
	const json_t *named = json_object_get(item, "name") ? json_object_get(item, "name")
							    : json_object_get(item, "run_id");
	const char *name = json_string_value(json_is_object(item) ? named : item);
	int r = name ? cordon_text_escape(text, name, strlen(name)) : 0;

	return r == 0 && cordon_json_is(item, "access", "read-only") ? cordon_buf_adds(text, ":ro") : r;
}

void cordon_cli_pair_value(struct cordon_buf *text, const json_t *value)
{
	autofree char *dumped = NULL;
	json_t *item;
	size_t i;

	cordon_buf_reset(text);
	if (json_is_string(value)) {
		(void)cordon_text_escape(text, json_string_value(value), json_string_length(value));
	} else if (json_is_array(value)) {
		json_array_foreach(value, i, item) {
			if (i)
				(void)cordon_buf_addc(text, ',');
			(void)add_item(text, item);
		}
	} else if (value && !json_is_null(value)) {
		dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		(void)cordon_buf_adds(text, dumped ? dumped : "");
	}
}

static void print_pairs(const json_t *record, const char *between)
{
	struct cordon_buf text autobuf = CORDON_BUF(VALUE_MAX);
	const char *key, *lead = "";
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)record, key, value) {
		cordon_cli_pair_value(&text, value);
		printf("%s%s=%s", lead, key, text.data ? text.data : "");
		lead = between;
	}
	putchar('\n');
}

static void print_first(const json_t *record)
{
	struct cordon_buf text autobuf = CORDON_BUF(VALUE_MAX);
	void *first = json_object_iter((json_t *)(uintptr_t)record);

	cordon_cli_pair_value(&text, first ? json_object_iter_value(first) : NULL);
	printf("%s\n", text.data ? text.data : "");
}

int cordon_cli_answer_pairs(const struct cordon_cli *cli, const char *headline, json_t *record)
{
	if (cli->json)
		return cordon_cli_print_json(cli, record);
	if (cli->quiet) {
		print_first(record);
	} else {
		if (headline)
			printf("%s\n", headline);
		print_pairs(record, "\n");
	}
	json_decref(record);
	return CORDON_EXIT_OK;
}

/* Lists in a record become text for the columns of a table. */
static void flatten(json_t *records)
{
	struct cordon_buf text autobuf = CORDON_BUF(VALUE_MAX);
	const char *key;
	json_t *record, *value;
	void *next;
	size_t i;

	json_array_foreach(records, i, record) {
		json_object_foreach_safe(record, next, key, value)
		{
			if (!json_is_array(value))
				continue;
			cordon_cli_pair_value(&text, value);
			json_object_set_new(record, key, json_string(text.data ? text.data : ""));
		}
	}
}

int cordon_cli_list_pairs(const struct cordon_cli *cli, const struct cordon_column *columns, bool table, json_t *records)
{
	json_t *record;
	size_t i;

	if (cli->json)
		return cordon_cli_print_json(cli, records);
	if (table && !cli->quiet) {
		flatten(records);
		cordon_cli_print_table(cli, columns, records);
	} else {
		json_array_foreach(records, i, record) {
			if (cli->quiet)
				print_first(record);
			else
				print_pairs(record, "\t");
		}
	}
	json_decref(records);
	return CORDON_EXIT_OK;
}

bool cordon_cli_load_settings(const struct cordon_cli *cli, const char *config, unsigned int flags,
			      struct cordon_settings_file **ret_settings, int *ret_exit)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };

	if (cordon_settings_load(config, flags, ret_settings, &errors) == 0)
		return true;
	*ret_exit = cordon_cli_fail_all(cli, &errors);
	return false;
}

bool cordon_cli_load_orchestrator(const struct cordon_cli *cli, const char *config, const char *id,
				  struct cordon_settings_file **ret_settings,
				  const struct cordon_orchestrator **ret_orchestrator, int *ret_exit)
{
	struct cordon_error err = { 0 };

	if (!cordon_cli_load_settings(cli, config, 0, ret_settings, ret_exit))
		return false;
	if (cordon_settings_orchestrator(*ret_settings, id, ret_orchestrator, &err) == 0)
		return true;
	*ret_exit = cordon_cli_fail(cli, &err);
	return false;
}

bool cordon_cli_change_settings(const struct cordon_cli *cli, const struct cordon_settings_edit *edit,
				struct cordon_settings_edited *ret_edited, int *ret_exit)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };

	if (cordon_settings_edit(edit, ret_edited, &errors) == 0)
		return true;
	*ret_exit = cordon_cli_fail_all(cli, &errors);
	return false;
}

int cordon_cli_list_settings(struct cordon_cli *cli, int argc, char **argv, const struct cordon_column *columns,
			     json_t *(*record)(const struct cordon_settings_file *settings, size_t i))
{
	autosettings struct cordon_settings_file *settings = NULL;
	struct cordon_pairs_args args;
	json_t *records, *next;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 0, &args, &code) ||
	    !cordon_cli_load_settings(cli, args.config, 0, &settings, &code))
		return code;
	records = json_array();
	for (size_t i = 0; (next = record(settings, i)); i++)
		json_array_append_new(records, next);
	return cordon_cli_list_pairs(cli, columns, args.table, records);
}

int cordon_cli_show_settings(struct cordon_cli *cli, int argc, char **argv,
			     json_t *(*find)(const struct cordon_settings_file *settings, const char *id,
					     struct cordon_error *err))
{
	autosettings struct cordon_settings_file *settings = NULL;
	struct cordon_error err = { 0 };
	struct cordon_pairs_args args;
	json_t *record;
	int code;

	if (!cordon_cli_begin(cli, argc, argv, 1, &args, &code) ||
	    !cordon_cli_load_settings(cli, args.config, 0, &settings, &code))
		return code;
	record = find(settings, args.operands[0], &err);
	return record ? cordon_cli_answer_pairs(cli, NULL, record) : cordon_cli_fail(cli, &err);
}
