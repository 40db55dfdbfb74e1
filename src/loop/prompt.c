/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt of a story: what is to be done, when it is done, what earlier attempts met, and the workspace. */
#include "base/text.h"
#include "config/prompt_section.h"
#include "loop/internal.h"

static int add_heading(struct cordon_buf *buf, const struct cordon_prd *prd, const struct cordon_prd_story *story)
{
	int r = cordon_buf_adds(buf, "# Story ");

	if (r == 0)
		r = cordon_text_escape(buf, story->id, strlen(story->id));
	if (r == 0)
		r = cordon_buf_adds(buf, ": ");
	if (r == 0)
		r = cordon_text_escape(buf, story->title, strlen(story->title));
	if (r == 0)
		r = cordon_buf_adds(buf, "\n\nProject: ");
	if (r == 0)
		r = cordon_text_escape(buf, prd->project, strlen(prd->project));
	return r < 0 ? r : cordon_buf_adds(buf, "\n\n");
}

static int add_text(struct cordon_buf *buf, const char *title, const char *text)
{
	int r;

	if (!text || !*text)
		return 0;
	r = cordon_buf_addf(buf, "## %s\n\n", title);
	if (r == 0)
		r = cordon_text_escape_lines(buf, text, strlen(text));
	return r < 0 ? r : cordon_buf_adds(buf, "\n\n");
}

static int add_list(struct cordon_buf *buf, const char *title, const char *const *items, size_t n, bool code)
{
	int r = n ? cordon_buf_addf(buf, "## %s\n\n", title) : 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = cordon_buf_adds(buf, code ? "- `" : "- ");
		if (r == 0)
			r = code ? cordon_prompt_name(buf, items[i])
				 : cordon_text_escape(buf, items[i], strlen(items[i]));
		if (r == 0)
			r = cordon_buf_adds(buf, code ? "`\n" : "\n");
	}
	return r == 0 && n ? cordon_buf_adds(buf, "\n") : r;
}

/* What an earlier call of an agent, or its check, said is quoted: it is no instruction. */
static int add_attempts(struct cordon_buf *buf, const struct cordon_loop_story *one)
{
	int r;

	if (!one->note || !*one->note)
		return 0;
	r = cordon_buf_adds(buf, "## Earlier Attempts\n\nThis story was tried before. What came of it:\n\n");
	if (r == 0)
		r = cordon_text_escape_lines(buf, one->note, strlen(one->note));
	return r;
}

static int add_rules(struct cordon_buf *buf, const struct cordon_loop *loop)
{
	int r = cordon_buf_adds(
		buf,
		"## Rules\n\n"
		"- Do this story and nothing else, then exit with status 0; exit with another status if you can't.\n"
		"- The PRD can't be changed from inside. The story is marked as passed when its checks succeed.\n");

	if (r == 0 && !loop->options.no_views)
		r = cordon_buf_adds(buf,
				    "- You work in a copy of the repository. Your changes are taken over afterwards.\n");
	if (r == 0 && loop->git.active && loop->options.git == CORDON_GIT_COMMIT)
		r = cordon_buf_adds(buf, "- You may commit. What you leave uncommitted is committed for you.\n");
	if (r == 0 && loop->options.verify) {
		r = cordon_buf_adds(buf, "- Your result is checked with this command: `");
		if (r == 0)
			r = cordon_prompt_name(buf, loop->options.verify);
		if (r == 0)
			r = cordon_buf_adds(buf, "`\n");
	}
	return r < 0 ? r : cordon_buf_adds(buf, "\n");
}

int cordon_loop_prompt(const struct cordon_loop *loop, size_t story, struct cordon_buf *ret_text,
		       struct cordon_error *err)
{
	const struct cordon_loop_story *one = &loop->stories[story];
	const struct cordon_loop_prd *prd = &loop->options.prds[one->prd];
	struct cordon_prompt_section section = { .mode = prd->mode,
						 .list = prd->folders,
						 .folders = prd->items,
						 .n_folders = prd->n_items,
						 .scope = cordon_loop_scope_inferred(loop, story)
								  ? CORDON_SECTION_SCOPE_INFERRED
								  : CORDON_SECTION_SCOPE_WRITTEN };
	int r = add_heading(ret_text, loop->prds[one->prd], one->story);

	if (r == 0)
		r = add_text(ret_text, "Description", one->story->description);
	if (r == 0)
		r = add_list(ret_text, "Acceptance Criteria", one->story->criteria, one->story->n_criteria, false);
	if (r == 0)
		r = add_text(ret_text, "Notes", one->story->notes);
	if (r == 0 && loop->options.file_scope != CORDON_FILE_SCOPE_OFF)
		r = add_list(ret_text, "File Scope", one->story->scope, one->story->n_scope, true);
	if (r == 0)
		r = add_attempts(ret_text, one);
	if (r == 0)
		r = add_rules(ret_text, loop);
	if (r == 0 && prd->n_items)
		r = cordon_prompt_section(&section, ret_text);
	return r < 0 ? cordon_fail_errno(err, r, "cannot make the prompt of %s", one->story->id) : 0;
}
