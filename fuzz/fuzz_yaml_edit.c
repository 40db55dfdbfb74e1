/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes edits of YAML files: three bytes choose the edit, its place and its value, the rest is the file. An edit that succeeds
 * adds bytes or takes bytes away at its place; all others stay in their order. One that fails leaves the text as it was. */
#include <assert.h>

#include "base/text.h"
#include "config/edit_yaml.h"

#define NODES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct found {
	const struct cordon_node *nodes[NODES_MAX], *parents[NODES_MAX];
	size_t n;
};

static void collect(const struct cordon_node *node, const struct cordon_node *parent, struct found *found)
{
	if (found->n == NODES_MAX)
		return;
	found->nodes[found->n] = node;
	found->parents[found->n++] = parent;
	for (const struct cordon_node *child = node->first; child; child = child->next)
		collect(child, node, found);
}

static json_t *value_of(uint8_t choice)
{
	switch (choice % 6) {
	case 0:
		return json_string("plain");
	case 1:
		return json_string("a: b # c\n'\"\\ [d]");
	case 2:
		return json_pack("{s:s, s:[s,s]}", "name", "x y", "list", "1", "- 2");
	case 3:
		return json_pack("[s,{s:s}]", "~", "k:", "v");
	case 4:
		return json_pack("{}");
	default:
		return json_string("");
	}
}

/* Whether every byte of `part` but those of `but` is in `whole`, in this order. */
static bool is_within(const char *part, size_t n, const char *whole, size_t len, const char *but)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (part[i] && strchr(but, part[i]))
			continue;
		while (at < len && whole[at] != part[i])
			at++;
		if (at++ == len)
			return false;
	}
	return true;
}

/* Comments stay, except those inside of what was replaced or removed. */
static size_t comments(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '#' && (i == 0 || text[i - 1] == '\n');
	return n;
}

static void edit(struct cordon_yaml *yaml, const uint8_t *choice, struct cordon_errors *errors)
{
	struct cordon_buf old autobuf = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	const struct cordon_node *node, *parent;
	struct found found = { .n = 0 };
	const char *before, *after;
	int r = -1, kind = choice[0] % 4;
	bool same;

	if (cordon_buf_add(&old, yaml->text.data ? yaml->text.data : "", yaml->text.len) < 0)
		return;
	if (yaml->doc)
		collect(yaml->doc->root, NULL, &found);
	node = found.n ? found.nodes[choice[1] % found.n] : NULL;
	parent = found.n ? found.parents[choice[1] % found.n] : NULL;
	if (kind == 0 && (!node || node->type == CORDON_NODE_MAPPING) && !(node && cordon_node_get(node, "added")))
		r = cordon_yaml_put_in(yaml, node, "added", value_of(choice[2]), errors);
	else if (kind == 1 && node && node->type == CORDON_NODE_SEQUENCE)
		r = cordon_yaml_append(yaml, node, value_of(choice[2]), errors);
	else if (kind == 2 && node && parent)
		r = cordon_yaml_drop(yaml, parent, node, errors);
	else if (kind == 3 && node && parent && node->type == CORDON_NODE_SCALAR)
		r = cordon_yaml_replace(yaml, node, value_of(choice[2]), errors);
	else
		return;
	before = old.data ? old.data : "";
	after = yaml->text.data ? yaml->text.data : "";
	same = yaml->text.len == old.len && memcmp(before, after, old.len) == 0;
	if (r < 0) {
		assert(same && errors->n > 0);
		return;
	}
	assert(cordon_utf8_valid(after, yaml->text.len));
	/* Brackets of an empty collection go when it gets a member, and come when it loses the last one; so do blanks. */
	if (kind < 2) {
		assert(is_within(before, old.len, after, yaml->text.len, "{}[]~nul "));
		assert(comments(after, yaml->text.len) >= comments(before, old.len));
	} else if (kind == 2) {
		assert(is_within(after, yaml->text.len, before, old.len, "{}[] \n"));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cordon_errors errors = { 0 };
	struct cordon_yaml yaml = { 0 };

	if (size < 3)
		return 0;
	if (cordon_yaml_begin(&yaml, "f", (const char *)data + 3, size - 3, &errors) == 0)
		edit(&yaml, data, &errors);
	cordon_yaml_done(&yaml);
	cordon_errors_done(&errors);
	return 0;
}
