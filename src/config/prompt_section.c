/* SPDX-License-Identifier: Apache-2.0 */
/* The section of a prompt about a folder workspace, in the words that agents of such loops know. */
#include "config/prompt_section.h"
#include "base/text.h"

static const char *const strict_rule =
	"2. **Strict Mode**: File access outside workspace will FAIL. You must stay within workspace boundaries.\n\n";
static const char *const permissive_rule =
	"2. **Permissive Mode**: File access outside workspace is allowed but will be reported with a WARNING. You should "
	"stay within workspace boundaries.\n\n";
static const char *const inferred_rule =
	"3. **File Scope**: The story's fileScope has been automatically inferred from workspace contents. "
	"Focus your changes on these patterns.\n\n";
static const char *const written_rule =
	"3. **File Scope**: The story has a fileScope of its own. Focus your changes on these patterns.\n\n";

int cordon_prompt_name(struct cordon_buf *buf, const char *name)
{
	autobuf struct cordon_buf safe = CORDON_BUF(1u << 21);
	int r = cordon_text_escape(&safe, name, strlen(name));

	for (size_t i = 0; r == 0 && i < safe.len; i++)
		r = safe.data[i] == '`' ? cordon_buf_adds(buf, "\\x60") : cordon_buf_addc(buf, safe.data[i]);
	return r;
}

int cordon_prompt_section(const struct cordon_prompt_section *section, struct cordon_buf *ret_text)
{
	int r = cordon_buf_addf(ret_text,
				"# Workspace Sandboxing\n\n"
				"This iteration is running with workspace sandboxing ENABLED.\n\n"
				"## Workspace Configuration\n\n"
				"**Mode**: %s\n"
				"**Allowed Folders**: ",
				section->mode == CORDON_MODE_STRICT ? "strict" : "permissive");

	if (r == 0)
		r = cordon_prompt_name(ret_text, section->list);
	if (r == 0)
		r = cordon_buf_addf(
			ret_text,
			"\n\n## Workspace Rules\n\n"
			"1. **File Access Constraints**: You should primarily work with files within the workspace folders "
			"listed above.\n\n"
			"%s%s"
			"4. **Safety**: Do not attempt to access files outside the workspace unless absolutely necessary.\n\n"
			"## Workspace Folders\n\n",
			section->mode == CORDON_MODE_STRICT ? strict_rule : permissive_rule,
			section->scope == CORDON_SECTION_SCOPE_INFERRED ? inferred_rule : written_rule);
	for (size_t i = 0; r == 0 && i < section->n_folders; i++) {
		const char *folder = section->folders[i];
		size_t len = strlen(folder);

		r = cordon_buf_adds(ret_text, "- `");
		if (r == 0)
			r = cordon_prompt_name(ret_text, folder);
		if (r == 0)
			r = cordon_buf_adds(ret_text, len && folder[len - 1] == '/' ? "`\n" : "/`\n");
	}
	return r;
}
