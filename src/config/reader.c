/* SPDX-License-Identifier: Apache-2.0 */
/* Small readers that all configuration files share. */
#include "config/reader.h"
#include "policy/pattern.h"

int cordon_reader_refuse(const struct cordon_reader *reader, const struct cordon_node *node, struct cordon_error *err,
			 size_t at)
{
	size_t line = node->line, column = node->column;

	if (err->code == -ENOMEM)
		return -ENOMEM;
	if (err->kind == CORDON_KIND_USAGE)
		err->kind = CORDON_KIND_CONFIG;
	if (at != CORDON_READER_WHOLE)
		cordon_node_place(reader->doc, node, at, &line, &column);
	cordon_errors_add(reader->errors, err, reader->doc->name, line, column);
	return 0;
}

bool cordon_reader_text(const struct cordon_reader *reader, const struct cordon_node *node, const char *what)
{
	bool bare = node->type == CORDON_NODE_SCALAR && node->style == CORDON_STYLE_PLAIN;

	if (node->type == CORDON_NODE_BAD)
		return false;
	if (node->type == CORDON_NODE_SCALAR && !(bare && (node->len == 0 || reader->doc->format == CORDON_FORMAT_JSON)))
		return true;
	cordon_node_fail(reader->doc, node, reader->errors,
			 !bare				     ? NULL
			 : node->len && node->text[0] != 'n' ? "put it in quotes"
							     : "leave it out, or write \"\" for an empty value",
			 "%s must be text, not %s", what, cordon_node_describe(reader->doc, node));
	return false;
}

bool cordon_reader_collection(const struct cordon_reader *reader, const struct cordon_node *node, cordon_node_type type,
			      const char *what)
{
	bool list = type == CORDON_NODE_SEQUENCE, json = reader->doc->format == CORDON_FORMAT_JSON;

	if (node->type == type)
		return true;
	if (node->type != CORDON_NODE_BAD)
		cordon_node_fail(reader->doc, node, reader->errors,
				 list && json ? "write [\"one\", \"two\"]"
				 : list	      ? "write [one, two], or one entry per line after a dash"
				 : json	      ? "write {\"key\": \"value\"}"
					      : "write {KEY: value}",
				 "%s must be %s, not %s", what, list ? "a list" : "a mapping",
				 cordon_node_describe(reader->doc, node));
	return false;
}

bool cordon_reader_bool(const struct cordon_reader *reader, const struct cordon_node *node, const char *what,
			bool *ret_value)
{
	bool plain = node->type == CORDON_NODE_SCALAR && node->style == CORDON_STYLE_PLAIN;
	bool yes = plain && cordon_streq(node->text, "true");

	if (node->type == CORDON_NODE_BAD)
		return false;
	if (!yes && !(plain && cordon_streq(node->text, "false"))) {
		cordon_node_fail(reader->doc, node, reader->errors, "write true or false, without quotes",
				 "%s must be true or false", what);
		return false;
	}
	*ret_value = yes;
	return true;
}

int cordon_reader_pattern(const struct cordon_reader *reader, const struct cordon_node *node, const char *what)
{
	struct cordon_error err = { 0 };
	size_t column = 0;

	if (!cordon_reader_text(reader, node, what))
		return 0;
	if (cordon_pattern_check(node->text, &column, &err) == 0)
		return 1;
	return cordon_reader_refuse(reader, node, &err, column ? column - 1 : CORDON_READER_WHOLE);
}

int cordon_reader_where(const struct cordon_reader *reader, const struct cordon_node *node, const char **ret_where)
{
	const char *where = cordon_document_where(reader->doc, node);

	if (!where)
		return -ENOMEM;
	*ret_where = where;
	return 0;
}
