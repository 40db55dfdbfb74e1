/* SPDX-License-Identifier: Apache-2.0 */
/* New files of agents. */
#include <fcntl.h>

#include "agent/edit.h"
#include "base/io.h"
#include "base/path.h"
#include "config/suggest.h"

#define EMPTY_FILE "{\n  \"agents\": []\n}\n"

/* clang-format off */
static const struct cordon_agent_preset presets[] = {
	{ "frontend", "writes the sources of a web page, reads everything",
	  { .name = "frontend", .role = "developer", .patterns = "src/**/*.{ts,tsx,js,jsx,css,html}", .read = "**" } },
	{ "backend", "writes sources and migrations",
	  { .name = "backend", .role = "developer", .patterns = "src/**,migrations/**" } },
	{ "docs", "writes documents",
	  { .name = "docs", .role = "spec", .patterns = "docs/**,*.md" } },
	{ "tests", "writes tests, reads the sources",
	  { .name = "tests", .role = "qa", .patterns = "tests/**", .read = "src/**" } },
	{ "read-only", "reads everything, writes nothing",
	  { .name = "reviewer", .role = "reviewer", .patterns = "**", .read_only = true } },
};
/* clang-format on */

const struct cordon_agent_preset *cordon_agent_presets(size_t *ret_n)
{
	*ret_n = CORDON_ARRAY_SIZE(presets);
	return presets;
}

static int choose(const char *name, const struct cordon_agent_draft **ret_draft, struct cordon_error *err)
{
	static const struct cordon_agent_draft plain = { .name = "developer", .role = "developer", .patterns = "src/**" };
	autobuf struct cordon_buf list = CORDON_BUF(256);

	if (!name) {
		*ret_draft = &plain;
		return 0;
	}
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(presets); i++) {
		cordon_buf_addf(&list, "%s%s", i ? ", " : "", presets[i].name);
		if (!cordon_streq(presets[i].name, name))
			continue;
		*ret_draft = &presets[i].draft;
		return 0;
	}
	cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "there is no preset '%.80s'", name);
	cordon_error_hint(err, "there are %s", list.data ? list.data : "");
	return -EINVAL;
}

int cordon_agents_init(const struct cordon_root *root, const char *preset, char ret_path[static CORDON_PATH_MAX],
		       struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_CONFIG_SIZE_MAX);
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	static const char *const files[] = { CORDON_AGENTS_JSON, CORDON_AGENTS_YAML };
	const struct cordon_agent_draft *draft = NULL;
	int r = choose(preset, &draft, err);

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(files); i++)
		if (faccessat(root->fd, files[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
			r = cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "%s/%s is there already", root->path,
					files[i]);
			cordon_error_hint(err, "'cordon agent add' adds an agent to it");
		}
	if (r < 0)
		return r;
	r = cordon_agents_edit(CORDON_AGENTS_JSON, CORDON_FORMAT_JSON, EMPTY_FILE, strlen(EMPTY_FILE), draft, NULL,
			       &text, &errors);
	if (r < 0) {
		cordon_errors_first(&errors, err);
		return r;
	}
	if (cordon_path_join(root->path, CORDON_AGENTS_JSON, ret_path, CORDON_PATH_MAX) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", root->path);
	return cordon_write_file(root->fd, CORDON_AGENTS_JSON, 0644, text.data, text.len, err);
}
