/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes policy files: the first byte selects YAML or JSON, the rest is the file. */
#include <assert.h>

#include "base/text.h"
#include "config/policy_file.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every node lies inside its parent's source, and keys and children are at the places that they have. */
static void check_nodes(const struct cordon_document *doc, const struct cordon_node *node)
{
	size_t n = 0;

	assert(node->line > 0 && node->column > 0 && node->start <= node->end && node->end <= doc->len);
	assert(node->type != CORDON_NODE_SCALAR ||
	       (strlen(node->text) == node->len && cordon_utf8_valid(node->text, node->len)));
	for (const struct cordon_node *child = node->first; child; child = child->next, n++) {
		assert((child->key != NULL) == (node->type == CORDON_NODE_MAPPING));
		check_nodes(doc, child);
	}
	assert(n == node->n);
}

static void check_errors(const struct cordon_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++) {
		const struct cordon_error *err = &errors->items[i];

		assert(err->code < 0 && err->kind != CORDON_KIND_NONE && err->kind != CORDON_KIND_INTERNAL);
		assert(err->message[0] && cordon_utf8_valid(err->message, strlen(err->message)));
		assert(i == 0 || errors->places[i - 1].line <= errors->places[i].line || errors->places[i].line == 0);
	}
}

/* A file that was read without an error can be applied to a policy, or is refused at a place, and then nothing was
 * added. */
static void check_apply(const struct cordon_policy_file *file)
{
	struct cordon_errors errors = { 0 };
	struct cordon_policy *policy = NULL;

	if (cordon_policy_new("/", &policy, NULL) < 0)
		return;
	if (cordon_policy_file_apply(file, policy, &errors) < 0) {
		assert(errors.n > 0 && errors.items[0].where[0]);
		assert(policy->n_grants == 0 && policy->n_protected == 0 && !policy->folders && !policy->read_only);
	} else {
		assert(errors.n == 0);
		assert(policy->n_grants == file->workspace.n + file->rw.n + file->ro.n + file->deny.n);
	}
	check_errors(&errors);
	cordon_errors_done(&errors);
	cordon_policy_free(policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cordon_errors errors = { 0 };
	struct cordon_policy_file *file = NULL;
	struct cordon_document *doc = NULL;
	cordon_format format;

	if (size == 0)
		return 0;
	format = data[0] & 1 ? CORDON_FORMAT_JSON : CORDON_FORMAT_YAML;
	if (cordon_document_parse("f", format, (const char *)data + 1, size - 1, CORDON_CONFIG_DEPTH_MAX, &doc,
				  &errors) == 0)
		check_nodes(doc, doc->root);
	else
		assert(errors.n > 0);
	check_errors(&errors);
	cordon_errors_done(&errors);
	cordon_document_free(doc);

	if (cordon_policy_file_parse("f", format, (const char *)data + 1, size - 1, &file, &errors) == 0) {
		assert(errors.n == 0);
		check_apply(file);
	} else {
		assert(errors.n > 0 && !file);
	}
	check_errors(&errors);
	cordon_errors_done(&errors);
	cordon_policy_file_free(file);
	return 0;
}
