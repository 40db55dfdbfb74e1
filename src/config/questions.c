/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a table of questions about a policy. */
#include "config/questions.h"
#include "config/reader.h"
#include "policy/net.h"

#define SHAPE "write as in: allow write src/a.ts, deny read .env, deny connect evil.example"

/* Takes the word that begins at *at, and goes on to what follows it. Returns its index in the list, or `n`. */
static size_t take_word(const char *text, size_t *at, const char *const *words, size_t n)
{
	size_t len = strcspn(text + *at, " \t"), found = 0;

	while (found < n && (strlen(words[found]) != len || memcmp(words[found], text + *at, len) != 0))
		found++;
	if (found < n)
		*at += len + strspn(text + *at + len, " \t");
	return found;
}

static int refuse(const struct cordon_reader *in, const struct cordon_node *node, size_t at, const char *what)
{
	struct cordon_error err = { 0 };

	cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "%s", what);
	cordon_error_hint(&err, SHAPE);
	return cordon_reader_refuse(in, node, &err, at);
}

static int check_host(const struct cordon_reader *in, const struct cordon_node *node, size_t at)
{
	struct cordon_error err = { 0 };
	struct cordon_net_rule rule;
	size_t column = 0;

	if (cordon_net_rule_check(node->text + at, &column, &err) < 0)
		return cordon_reader_refuse(in, node, &err, column ? at + column - 1 : at);
	if (cordon_net_rule_parse(node->text + at, node->len - at, &rule, &err) == 0 &&
	    rule.kind != CORDON_NET_KIND_WILDCARD)
		return 1;
	cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "`%s` is more than one host", node->text + at);
	cordon_error_hint(&err, "ask about one of them");
	return cordon_reader_refuse(in, node, &err, at);
}

/* Returns 1 for a good question, 0 after an error, -ENOMEM. */
static int read_question(const struct cordon_reader *in, const struct cordon_node *node, struct cordon_question *ret)
{
	static const char *const verdicts[] = { [CORDON_ALLOW] = "allow", [CORDON_WARN] = "warn", [CORDON_DENY] = "deny" };
	static const char *const ops[] = { [CORDON_OP_READ] = "read", [CORDON_OP_WRITE] = "write", "connect" };
	size_t at, verdict, op;
	int r = 1;

	if (!cordon_reader_text(in, node, "a question"))
		return 0;
	at = strspn(node->text, " \t");
	verdict = take_word(node->text, &at, verdicts, CORDON_ARRAY_SIZE(verdicts));
	if (verdict == CORDON_ARRAY_SIZE(verdicts))
		return refuse(in, node, at, "a question begins with allow, warn or deny");
	op = take_word(node->text, &at, ops, CORDON_ARRAY_SIZE(ops));
	if (op == CORDON_ARRAY_SIZE(ops))
		return refuse(in, node, at, "the second word of a question is read, write or connect");
	if (!node->text[at])
		return refuse(in, node, CORDON_READER_WHOLE, "the question names no path or host");
	*ret = (struct cordon_question){ .expected = (cordon_verdict)verdict,
					 .connect = op > CORDON_OP_WRITE,
					 .op = op == CORDON_OP_WRITE ? CORDON_OP_WRITE : CORDON_OP_READ,
					 .text = node->text,
					 .subject = node->text + at };
	if (ret->connect)
		r = check_host(in, node, at);
	if (ret->connect && r > 0 && verdict == CORDON_WARN)
		r = refuse(in, node, 0, "a host is allowed or denied; there are no warnings");
	return r <= 0 ? r : cordon_reader_where(in, node, &ret->where) < 0 ? -ENOMEM : 1;
}

static int read_questions(const struct cordon_reader *in, const struct cordon_node *list, struct cordon_questions *ret)
{
	if (!cordon_reader_collection(in, list, CORDON_NODE_SEQUENCE, "questions"))
		return 0;
	if (list->n > CORDON_QUESTIONS_MAX) {
		cordon_node_fail(in->doc, list, in->errors, "make several files of them", "more than %d questions",
				 CORDON_QUESTIONS_MAX);
		return 0;
	}
	ret->items = cordon_document_alloc(in->doc, list->n * sizeof(*ret->items) + 1);
	ret->n = 0; /* a duplicate key is read twice */
	if (!ret->items)
		return -ENOMEM;
	for (const struct cordon_node *node = list->first; node; node = node->next) {
		int r = read_question(in, node, &ret->items[ret->n]);

		if (r < 0)
			return r;
		ret->n += (size_t)r;
	}
	return 0;
}

static int read_key(const struct cordon_reader *in, const struct cordon_node *node, struct cordon_questions *ret)
{
	struct cordon_error err = { 0 };

	if (cordon_streq(node->key->text, "questions"))
		return read_questions(in, node, ret);
	if (!cordon_streq(node->key->text, "version")) {
		cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "unknown key '%s'", node->key->text);
		cordon_error_hint(&err, "known are version, questions");
		return cordon_reader_refuse(in, node->key, &err, CORDON_READER_WHOLE);
	}
	if (node->type != CORDON_NODE_SCALAR || !cordon_streq(node->text, "1"))
		cordon_node_fail(in->doc, node, in->errors, "write 1", "version must be 1");
	return 0;
}

/* Takes the document. `before` is how many errors there were before it was read. */
static int make(struct cordon_document *doc, size_t before, struct cordon_questions *ret, struct cordon_errors *errors)
{
	struct cordon_questions made CORDON_CLEANUP(cordon_questions_done) = { .doc = doc };
	const struct cordon_reader in = { .doc = doc, .errors = errors };
	struct cordon_error err = { 0 };
	int r = 0;

	if (cordon_reader_collection(&in, doc->root, CORDON_NODE_MAPPING, "a table of questions"))
		for (const struct cordon_node *node = doc->root->first; r == 0 && node; node = node->next)
			r = read_key(&in, node, &made);
	if (r < 0) {
		cordon_fail_errno(&err, r, "cannot read %s", doc->name);
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	if (errors->n + errors->dropped == before && !made.n)
		cordon_node_fail(doc, doc->root, errors, SHAPE, "there are no questions");
	if (errors->n + errors->dropped > before)
		return -EINVAL;
	*ret = made;
	made = (struct cordon_questions){ 0 };
	return 0;
}

int cordon_questions_load(const char *path, struct cordon_questions *ret, struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped;
	struct cordon_document *doc;
	int r = cordon_document_load(path, &doc, errors);

	return r < 0 ? r : make(doc, before, ret, errors);
}

int cordon_questions_parse(const char *name, cordon_format format, const char *text, size_t len,
			   struct cordon_questions *ret, struct cordon_errors *errors)
{
	size_t before = errors->n + errors->dropped;
	struct cordon_document *doc;
	int r = cordon_document_parse(name, format, text, len, CORDON_CONFIG_DEPTH_MAX, &doc, errors);

	return r < 0 ? r : make(doc, before, ret, errors);
}

void cordon_questions_done(struct cordon_questions *questions)
{
	cordon_document_free(questions->doc);
	*questions = (struct cordon_questions){ 0 };
}
