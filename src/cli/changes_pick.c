/* SPDX-License-Identifier: Apache-2.0 */
/* cordon changes apply -p: asks about each hunk. */
#include <stdio.h>

#include "base/text.h"
#include "cli/changes_view.h"
#include "view/patch.h"

#define HELP                                                                                                           \
	"y - apply this\nn - do not apply this\na - apply this and all that follows in this file\n"                    \
	"d - apply neither this nor what follows in this file\nA - apply this and everything that follows\n"           \
	"D - end here: apply what was chosen so far\nq - quit and apply nothing\n? - this help\n"

/* Prints text of the agent: on a terminal without control characters. */
static void print(const struct cordon_picker *picker, const struct cordon_buf *text)
{
	autobuf struct cordon_buf shown = CORDON_BUF(CORDON_PATCH_MAX);

	if (picker->terminal && cordon_text_escape_lines(&shown, text->data ? text->data : "", text->len) == 0)
		fwrite(shown.data ? shown.data : "", 1, shown.len, stdout);
	else if (!picker->terminal && text->len)
		fwrite(text->data, 1, text->len, stdout);
}

/* Asks until there is an answer; the end of the input is a quit. */
static char ask(const char *question, const char *answers)
{
	for (;;) {
		char line[64];
		size_t n;

		printf("%s [%s,?]? ", question, answers);
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin)) {
			putchar('\n');
			return 'q';
		}
		n = strcspn(line, "\n");
		if (n == 1 && strchr(answers, line[0]) && line[0] != ',')
			return line[0];
		fputs(HELP, stdout);
	}
}

/* Asks about a change that can only be taken as a whole. */
static cordon_pick ask_whole(struct cordon_picker *picker, const struct cordon_delta_change *change)
{
	const char *question = change->kind == CORDON_DELTA_ADDED     ? "Apply this new file"
			       : change->kind == CORDON_DELTA_DELETED ? "Apply this deletion"
								      : "Apply this change";
	char answer = ask(question, "y,n,A,D,q");

	picker->rest = answer == 'A' || answer == 'D';
	picker->rest_yes = answer == 'A';
	return answer == 'q' ? CORDON_PICK_QUIT : answer == 'y' || answer == 'A' ? CORDON_PICK_ALL : CORDON_PICK_NO;
}

/* Asks about each hunk. Returns the number of edits that were chosen, or -1 to quit. */
static ssize_t ask_hunks(struct cordon_picker *picker, const struct cordon_text *a, const struct cordon_text *b,
			 const struct cordon_edits *edits, bool *chosen)
{
	struct cordon_hunk hunk = { 0 };
	ssize_t n = 0;
	char answer = 0;

	for (size_t i = 0; i < edits->n; i = hunk.first + hunk.n) {
		autobuf struct cordon_buf text = CORDON_BUF(CORDON_PATCH_MAX);
		bool yes;

		cordon_hunk_at(a, b, edits, i, &hunk);
		if (!answer || strchr("yn", answer)) {
			cordon_hunk_add(a, b, edits, &hunk, &text);
			print(picker, &text);
			answer = ask("Apply this hunk", "y,n,a,d,A,D,q");
		}
		if (answer == 'q')
			return -1;
		yes = answer == 'y' || answer == 'a' || answer == 'A';
		for (size_t k = i; yes && k < hunk.first + hunk.n; k++, n++)
			chosen[k] = true;
	}
	picker->rest = answer == 'A' || answer == 'D';
	picker->rest_yes = answer == 'A';
	return n;
}

/* Reads both sides of a change. Returns whether they are texts that can be taken hunk by hunk. */
static bool read_texts(const struct cordon_delta *delta, const struct cordon_delta_change *change,
		       struct cordon_buf *old, struct cordon_buf *new)
{
	return change->kind == CORDON_DELTA_MODIFIED && S_ISREG(change->old.mode) && S_ISREG(change->new.mode) &&
	       (change->old.mode & 0777) == (change->new.mode & 0777) &&
	       cordon_delta_read(delta, change, true, old, NULL) == 0 &&
	       cordon_delta_read(delta, change, false, new, NULL) == 0 && cordon_text_is(old->data, old->len) &&
	       cordon_text_is(new->data, new->len);
}

static int ask_text(struct cordon_picker *picker, const struct cordon_buf *old, const struct cordon_buf *new,
		    cordon_pick *ret_pick, struct cordon_buf *ret_content)
{
	autotext struct cordon_text a = { 0 }, b = { 0 };
	autoedits struct cordon_edits edits = { 0 };
	autofree bool *chosen = NULL;
	ssize_t n;
	int r = cordon_text_init(&a, old->data, old->len);

	if (r == 0)
		r = cordon_text_init(&b, new->data, new->len);
	if (r == 0)
		r = cordon_lines_diff(&a, &b, &edits);
	if (r == 0 && !(chosen = calloc(edits.n + 1, sizeof(*chosen))))
		r = -ENOMEM;
	if (r < 0)
		return r;
	n = ask_hunks(picker, &a, &b, &edits, chosen);
	*ret_pick = n < 0		   ? CORDON_PICK_QUIT
		    : n == 0		   ? CORDON_PICK_NO
		    : (size_t)n == edits.n ? CORDON_PICK_ALL
					   : CORDON_PICK_PART;
	return *ret_pick == CORDON_PICK_PART ? cordon_lines_apply(&a, &b, &edits, chosen, ret_content) : 0;
}

int cordon_picker_ask(void *data, const struct cordon_delta *delta, const struct cordon_delta_change *change,
		      cordon_pick *ret_pick, struct cordon_buf *ret_content, struct cordon_error *err)
{
	struct cordon_picker *picker = data;
	autobuf struct cordon_buf old = CORDON_BUF(CORDON_TEXT_BYTES_MAX), new = CORDON_BUF(CORDON_TEXT_BYTES_MAX);
	autobuf struct cordon_buf patch = CORDON_BUF(CORDON_PATCH_MAX);
	int r;

	if (picker->rest) {
		*ret_pick = picker->rest_yes ? CORDON_PICK_ALL : CORDON_PICK_NO;
		return 0;
	}
	if (read_texts(delta, change, &old, &new)) {
		cordon_buf_adds(&patch, "M ");
		cordon_patch_path(&patch, "", change->path);
		if (change->who)
			cordon_buf_addf(&patch, "  # executed by %s", change->who);
		cordon_buf_addc(&patch, '\n');
		print(picker, &patch);
		r = ask_text(picker, &old, &new, ret_pick, ret_content);
		return r < 0 ? cordon_fail_errno(err, r, "cannot compare %s", change->path) : 0;
	}
	r = cordon_patch_add(delta, change, &patch, err);
	if (r < 0)
		return r;
	if (!patch.len)
		cordon_buf_addf(&patch, "%c %s\n", cordon_patch_letter(change), change->path);
	print(picker, &patch);
	*ret_pick = ask_whole(picker, change);
	return 0;
}
