/* SPDX-License-Identifier: Apache-2.0 */
/* Fills templates of PRDs. */
#include <jansson.h>

#include "base/text.h"
#include "config/document.h"
#include "config/prd.h"
#include "config/template.h"

struct filling {
	const struct cordon_document *doc;
	struct cordon_template_var *vars;
	size_t n;
	struct cordon_buf *out;
	size_t done; /* bytes of the source that are in `out` */
	struct cordon_errors *errors;
};

static bool begins_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_length(const char *s)
{
	size_t n = begins_name(*s);

	while (n && (begins_name(s[n]) || (s[n] >= '0' && s[n] <= '9') || s[n] == '-'))
		n++;
	return n;
}

int cordon_template_var_parse(const char *text, struct cordon_template_var *ret_var, struct cordon_error *err)
{
	size_t n = name_length(text);

	if (!n || text[n] != '=') {
		cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "'%s' is not NAME=VALUE", text);
		cordon_error_hint(err, "a name is a letter or _, then letters, digits, _ and -");
		return -EINVAL;
	}
	if (!cordon_utf8_valid(text, strlen(text)))
		return cordon_fail(err, -EILSEQ, CORDON_KIND_USAGE, "the value of %.*s is not UTF-8", (int)n, text);
	*ret_var = (struct cordon_template_var){ .name = text, .n_name = n, .value = text + n + 1 };
	return 0;
}

/* The name in "{{ name }}" at `s`, and how long all of it is; NULL for anything else. */
static const char *find_name(const char *s, size_t *ret_name, size_t *ret_all)
{
	const char *name = s + 2 + strspn(s + 2, " \t"), *end;

	*ret_name = name_length(name);
	end = name + *ret_name + strspn(name + *ret_name, " \t");
	if (!*ret_name || end[0] != '}' || end[1] != '}')
		return NULL;
	*ret_all = (size_t)(end + 2 - s);
	return name;
}

static struct cordon_template_var *find_var(const struct filling *filling, const char *name, size_t n)
{
	for (size_t i = 0; i < filling->n; i++)
		if (filling->vars[i].n_name == n && memcmp(filling->vars[i].name, name, n) == 0)
			return &filling->vars[i];
	return NULL;
}

/* Puts values into a string. */
static int fill_text(struct filling *filling, const struct cordon_node *node, struct cordon_buf *ret_text,
		     bool *ret_changed)
{
	int r = 0;

	for (const char *p = node->text; r == 0 && *p;) {
		size_t n_name = 0, n_all = 0;
		const char *name = p[0] == '{' && p[1] == '{' ? find_name(p, &n_name, &n_all) : NULL;
		struct cordon_template_var *var = name ? find_var(filling, name, n_name) : NULL;

		if (!name) {
			r = cordon_buf_addc(ret_text, *p++);
			continue;
		}
		*ret_changed = true;
		if (!var)
			cordon_node_fail(filling->doc, node, filling->errors, "give it one: NAME=VALUE",
					 "the variable '%.*s' has no value", (int)(n_name < 100 ? n_name : 100), name);
		else
			r = cordon_buf_adds(ret_text, var->value);
		if (var)
			var->used = true;
		p += n_all;
	}
	return r;
}

static int fill_node(struct filling *filling, const struct cordon_node *node)
{
	struct cordon_buf text autobuf = CORDON_BUF(filling->out->max);
	autofree char *json = NULL;
	bool changed = false;
	json_t *value;
	int r;

	if (node->type != CORDON_NODE_SCALAR || node->style == CORDON_STYLE_PLAIN || !strstr(node->text, "{{"))
		return 0;
	r = fill_text(filling, node, &text, &changed);
	if (r < 0 || !changed)
		return r;
	value = json_string(text.data ? text.data : "");
	json = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
	json_decref(value);
	if (!json)
		return -ENOMEM;
	r = cordon_buf_add(filling->out, filling->doc->source + filling->done, node->start - filling->done);
	filling->done = node->end;
	return r < 0 ? r : cordon_buf_adds(filling->out, json);
}

/* All nodes below one, in the order of the file. */
/* NOLINTNEXTLINE(misc-no-recursion): CORDON_CONFIG_DEPTH_MAX bounds it. */
static int fill_below(struct filling *filling, const struct cordon_node *node)
{
	int r = fill_node(filling, node);

	for (const struct cordon_node *child = node->type == CORDON_NODE_SCALAR ? NULL : node->first; r == 0 && child;
	     child = child->next)
		r = fill_below(filling, child);
	return r;
}

static void report_unused(const struct filling *filling)
{
	for (size_t i = 0; i < filling->n; i++) {
		struct cordon_error err;

		if (filling->vars[i].used)
			continue;
		cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "%s has no variable '%.*s'", filling->doc->name,
			    (int)(filling->vars[i].n_name < 100 ? filling->vars[i].n_name : 100), filling->vars[i].name);
		cordon_errors_add(filling->errors, &err, NULL, 0, 0);
	}
}

int cordon_template_fill(const char *name, const char *text, size_t len, struct cordon_template_var *vars, size_t n,
			 struct cordon_buf *ret_text, struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped;
	autodocument struct cordon_document *doc = NULL;
	struct filling filling = { .vars = vars, .n = n, .out = ret_text, .errors = errors };
	struct cordon_error err = { 0 };
	int r = cordon_document_parse(name, CORDON_FORMAT_JSON, text, len, CORDON_CONFIG_DEPTH_MAX, &doc, errors);

	if (r < 0)
		return r;
	filling.doc = doc;
	r = fill_below(&filling, doc->root);
	if (r == 0)
		r = cordon_buf_add(ret_text, doc->source + filling.done, doc->len - filling.done);
	if (r == -E2BIG)
		cordon_fail(&err, r, CORDON_KIND_LIMIT, "%s would become larger than %zu bytes", name, ret_text->max);
	else if (r < 0)
		cordon_fail_errno(&err, r, "cannot fill %s", name);
	if (r < 0)
		cordon_errors_add(errors, &err, NULL, 0, 0);
	else
		report_unused(&filling);
	if (errors->n + errors->dropped > before) {
		cordon_buf_reset(ret_text);
		return -EINVAL;
	}
	return 0;
}
