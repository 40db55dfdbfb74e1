/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes PRD files: reading them, and edits, which give valid JSON in which nothing else changed; a second edit finds nothing
 * to do. */
#include <assert.h>

#include "config/prd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Removes fileScope from the stories that lack one in `old`; the rest must be equal. */
static void check_equal(const char *old_text, size_t old_len, const struct cordon_buf *new_text, const json_t *patterns,
			const struct cordon_prd_changes *changes)
{
	json_t *old = json_loadb(old_text, old_len, JSON_REJECT_DUPLICATES, NULL);
	json_t *new = json_loadb(new_text->data, new_text->len, JSON_REJECT_DUPLICATES, NULL);
	json_t *old_stories = json_object_get(old, "userStories"), *new_stories = json_object_get(new, "userStories");
	size_t changed = 0;

	assert(old && new &&json_is_array(new_stories));
	for (size_t i = 0; i < json_array_size(old_stories); i++) {
		json_t *story = json_array_get(old_stories, i), *scope = json_object_get(story, "fileScope");
		json_t *now = json_array_get(new_stories, i);

		if (scope && !json_is_null(scope) && json_array_size(scope) > 0)
			continue;
		assert(changed < changes->n);
		assert(strcmp(changes->ids[changed++], json_string_value(json_object_get(story, "id"))) == 0);
		assert(json_equal(json_object_get(now, "fileScope"), patterns));
		json_object_del(story, "fileScope");
		json_object_del(now, "fileScope");
	}
	assert(changed == changes->n);
	assert(json_equal(old, new));
	json_decref(old);
	json_decref(new);
}

/* Without a change the text is the same; where values were only added, the new text contains the old text in order. */
static void check_bytes(const char *old, size_t old_len, const struct cordon_buf *new, size_t changed)
{
	size_t at = 0;

	if (!changed)
		assert(new->len == old_len &&memcmp(new->data, old, old_len) == 0);
	if (memmem(old, old_len, "Scope", 5) || memmem(old, old_len, "\\", 1))
		return;
	for (size_t i = 0; i < new->len &&at < old_len; i++)
		at += new->data[i] == old[at];
	assert(at == old_len);
}

/* What the reader accepts has stories with ids and an order without cycles, and an edit of all its stories does what it
 * says, so that the reader accepts the result, too. */
static void check_model(const struct cordon_prd *prd, const char *text, size_t len)
{
	size_t ready[64], n = prd->n_stories;
	struct cordon_buf once = CORDON_BUF(CORDON_PRD_SIZE_MAX);
	struct cordon_prd_edit edits[64];
	struct cordon_prd_changes changes = { 0 };
	struct cordon_errors errors = { 0 };
	struct cordon_prd *again = NULL;

	assert(prd->project && prd->n_cycles == 0);
	for (size_t i = 0; i < n; i++)
		assert(prd->stories[i].id && prd->stories[i].title);
	if (n <= 64) {
		assert(cordon_prd_ready(prd, ready) <= n);
		for (size_t i = 0; i < n; i++)
			edits[i] = (struct cordon_prd_edit){
				.id = prd->stories[i].id, .set_passes = true, .passes = i % 2, .notes = "a\"\n"
			};
		assert(cordon_prd_edit_text("p", text, len, edits, n, &once, &changes, &errors) == 0);
		assert(cordon_prd_read("p", once.data, once.len, &again, &errors) == 0);
		assert(again->n_stories == n);
		for (size_t i = 0; i < n; i++) {
			assert(again->stories[i].passes == (i % 2));
			assert(strcmp(again->stories[i].notes, "a\"\n") == 0);
			assert(strcmp(again->stories[i].id, prd->stories[i].id) == 0);
			assert(again->stories[i].n_scope == prd->stories[i].n_scope);
		}
	}
	cordon_prd_free(again);
	cordon_prd_changes_done(&changes);
	cordon_errors_done(&errors);
	cordon_buf_done(&once);
}

static void check_reader(const char *text, size_t len)
{
	struct cordon_errors errors = { 0 };
	struct cordon_prd *prd = NULL;

	if (cordon_prd_read("p", text, len, &prd, &errors) == 0) {
		assert(errors.n == 0);
		check_model(prd, text, len);
	} else {
		assert(!prd && errors.n > 0);
	}
	cordon_prd_free(prd);
	cordon_errors_done(&errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cordon_buf once = CORDON_BUF(CORDON_PRD_SIZE_MAX), twice = CORDON_BUF(CORDON_PRD_SIZE_MAX);
	struct cordon_prd_changes changes = { 0 }, none = { 0 };
	struct cordon_errors errors = { 0 };
	const char *folders[] = { "a\"b\n", "lib" };
	json_t *patterns = NULL;

	check_reader((const char *)data, size);
	assert(cordon_prd_infer_scope(folders, 2, CORDON_SCOPE_WITH_FOLDER, &patterns, NULL) == 0);
	if (cordon_prd_edit_scope("p", (const char *)data, size, patterns, &once, &changes, &errors) == 0) {
		assert(errors.n == 0);
		check_equal((const char *)data, size, &once, patterns, &changes);
		check_bytes((const char *)data, size, &once, changes.n);
		assert(cordon_prd_edit_scope("p", once.data, once.len, patterns, &twice, &none, &errors) == 0);
		assert(none.n == 0 && once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	} else {
		assert(errors.n > 0 && changes.n == 0 && once.len == 0);
		for (size_t i = 0; i < errors.n; i++)
			assert(errors.items[i].kind == CORDON_KIND_CONFIG || errors.items[i].kind == CORDON_KIND_LIMIT);
	}
	json_decref(patterns);
	cordon_prd_changes_done(&changes);
	cordon_prd_changes_done(&none);
	cordon_errors_done(&errors);
	cordon_buf_done(&once);
	cordon_buf_done(&twice);
	return 0;
}
