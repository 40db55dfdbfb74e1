/* SPDX-License-Identifier: Apache-2.0 */
/* cordon changes apply -p: asks about each hunk. */
#include <stdio.h>

#include "base/text.h"
#include "cli/changes_view.h"
#include "view/pick.h"

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
	const char *question = change->kind == CORDON_DELTA_ADDED && S_ISDIR(change->new.mode)
				       ? "Apply this new directory"
			       : change->kind == CORDON_DELTA_ADDED   ? "Apply this new file"
			       : change->kind == CORDON_DELTA_DELETED ? "Apply this deletion"
								      : "Apply this change";
	char answer = ask(question, "y,n,A,D,q");

	picker->rest = answer == 'A' || answer == 'D';
	picker->rest_yes = answer == 'A';
	return answer == 'q' ? CORDON_PICK_QUIT : answer == 'y' || answer == 'A' ? CORDON_PICK_ALL : CORDON_PICK_NO;
}

/* Asks about each hunk. */
static int ask_hunks(struct cordon_picker *picker, const struct cordon_compared *compared, cordon_pick *ret_pick,
		     struct cordon_buf *ret_content)
{
	autofree bool *chosen = calloc(compared->n, sizeof(*chosen));
	char answer = 0;

	if (!chosen)
		return -ENOMEM;
	for (size_t i = 0; i < compared->n; i++) {
		autobuf struct cordon_buf text = CORDON_BUF(CORDON_PATCH_MAX);

		if (!answer || strchr("yn", answer)) {
			cordon_hunk_add(&compared->a, &compared->b, &compared->edits, &compared->hunks[i], &text);
			print(picker, &text);
			answer = ask("Apply this hunk", "y,n,a,d,A,D,q");
		}
		if (answer == 'q') {
			*ret_pick = CORDON_PICK_QUIT;
			return 0;
		}
		chosen[i] = answer == 'y' || answer == 'a' || answer == 'A';
	}
	picker->rest = answer == 'A' || answer == 'D';
	picker->rest_yes = answer == 'A';
	return cordon_pick_hunks(compared, chosen, ret_pick, ret_content);
}

/* The line above the hunks of a file. */
static void print_file(const struct cordon_picker *picker, const struct cordon_delta_change *change,
		       const struct cordon_compared *compared)
{
	autobuf struct cordon_buf line = CORDON_BUF(16 * CORDON_PATH_MAX);

	cordon_buf_adds(&line, "M ");
	cordon_patch_path(&line, "", change->path);
	if (change->who)
		cordon_buf_addf(&line, "  # executed by %s", change->who);
	if (compared->merged)
		cordon_buf_adds(&line, "  # merged with the host's changes");
	if (compared->conflict)
		cordon_buf_addf(&line, "  # %s", compared->conflict);
	cordon_buf_addc(&line, '\n');
	print(picker, &line);
}

int cordon_picker_ask(void *data, const struct cordon_delta *delta, const struct cordon_delta_change *change,
		      cordon_pick *ret_pick, struct cordon_buf *ret_content, struct cordon_error *err)
{
	struct cordon_picker *picker = data;
	autocompared struct cordon_compared compared = { 0 };
	autobuf struct cordon_buf patch = CORDON_BUF(CORDON_PATCH_MAX);
	int r;

	if (picker->rest) {
		*ret_pick = picker->rest_yes ? CORDON_PICK_ALL : CORDON_PICK_NO;
		return 0;
	}
	r = cordon_compare(picker->view, delta, change, CORDON_TEXT_BYTES_MAX, &compared, err);
	if (r < 0)
		return r;
	if (cordon_pick_by_hunk(change, &compared)) {
		print_file(picker, change, &compared);
		r = ask_hunks(picker, &compared, ret_pick, ret_content);
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
