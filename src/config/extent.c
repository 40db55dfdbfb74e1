/* SPDX-License-Identifier: Apache-2.0 */
/* Narrows the folders and the mode of a workspace. */
#include "config/extent.h"
#include "base/path.h"

static void folders_done(struct cordon_extent_folder *folders, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(folders[i].text);
		free(folders[i].path);
	}
	free(folders);
}

void cordon_extent_done(struct cordon_extent *ws)
{
	folders_done(ws->folders, ws->n);
	*ws = (struct cordon_extent){ 0 };
}

static int add_error(struct cordon_errors *errors, struct cordon_error *err, const char *where)
{
	if (where && !*err->where)
		cordon_error_where(err, where, 0, 0);
	return cordon_errors_add(errors, err, NULL, 0, 0);
}

static int no_memory(struct cordon_errors *errors)
{
	struct cordon_error err;

	cordon_fail_errno(&err, -ENOMEM, "workspace folders");
	return cordon_errors_add(errors, &err, NULL, 0, 0);
}

static int add_folder(struct cordon_extent *ws, const char *text, const char *path)
{
	struct cordon_extent_folder *bigger = reallocarray(ws->folders, ws->n + 1, sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	ws->folders = bigger;
	bigger[ws->n] = (struct cordon_extent_folder){ .text = strdup(text), .path = strdup(path) };
	ws->n++; /* so that half of a folder is freed, too */
	return bigger[ws->n - 1].text && bigger[ws->n - 1].path ? 0 : -ENOMEM;
}

static int add_once(struct cordon_extent *ws, const struct cordon_extent_folder *folder)
{
	for (size_t i = 0; i < ws->n; i++)
		if (cordon_streq(ws->folders[i].path, folder->path))
			return 0;
	return add_folder(ws, folder->text, folder->path);
}

/* Puts into `ret` what lies in a folder of each. */
static int intersect(const struct cordon_extent *a, const struct cordon_extent *b, struct cordon_extent *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n; i++)
		for (size_t k = 0; r == 0 && k < b->n; k++) {
			if (cordon_path_within(a->folders[i].path, b->folders[k].path))
				r = add_once(ret, &a->folders[i]);
			else if (cordon_path_within(b->folders[k].path, a->folders[i].path))
				r = add_once(ret, &b->folders[k]);
		}
	return r;
}

static int fail_empty(const struct cordon_extent *ws, const struct cordon_extent *named, const char *where,
		      struct cordon_errors *errors)
{
	autofree char *before = cordon_extent_list(ws), *now = cordon_extent_list(named);
	struct cordon_error err;

	if (!before || !now)
		return no_memory(errors);
	cordon_fail(&err, -EINVAL, CORDON_KIND_CONFIG, "no folder is left: %s and %s have nothing in common", now,
		    before);
	cordon_error_hint(&err, "each source of a workspace may only narrow it");
	return add_error(errors, &err, where);
}

/* Takes the folders of `named`. */
static int narrow(struct cordon_extent *ws, struct cordon_extent *named, const char *where, struct cordon_errors *errors)
{
	struct cordon_extent both = { 0 };

	if (!ws->limited) {
		ws->folders = named->folders;
		ws->n = named->n;
		ws->limited = true;
		*named = (struct cordon_extent){ 0 };
		return 0;
	}
	if (intersect(ws, named, &both) < 0) {
		cordon_extent_done(&both);
		return no_memory(errors);
	}
	if (!both.n)
		return fail_empty(ws, named, where, errors);
	folders_done(ws->folders, ws->n);
	ws->folders = both.folders;
	ws->n = both.n;
	return 0;
}

static int resolve(const struct cordon_root *root, const char *const *folders, size_t n, const char *where,
		   struct cordon_extent *ret, struct cordon_errors *errors)
{
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		char path[CORDON_PATH_MAX];
		struct cordon_error err = { 0 };
		int r = cordon_folder_resolve(root, folders[i], path, &err);

		if (r < 0)
			failed = add_error(errors, &err, where);
		else if (add_folder(ret, folders[i], path) < 0)
			failed = no_memory(errors);
	}
	return failed;
}

int cordon_extent_narrow(struct cordon_extent *ws, const struct cordon_root *root, const char *const *folders, size_t n,
			 const char *where, struct cordon_errors *errors)
{
	struct cordon_extent named CORDON_CLEANUP(cordon_extent_done) = { 0 };
	int r = resolve(root, folders, n, where, &named, errors);

	return r < 0 ? r : narrow(ws, &named, where, errors);
}

int cordon_extent_narrow_list(struct cordon_extent *ws, const struct cordon_root *root, const char *list,
			      struct cordon_errors *errors)
{
	struct cordon_folders folders CORDON_CLEANUP(cordon_folders_done) = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_folders_parse(list, &folders, &err) < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	return cordon_extent_narrow(ws, root, (const char *const *)folders.items, folders.n, NULL, errors);
}

void cordon_extent_narrow_mode(struct cordon_extent *ws, cordon_mode mode)
{
	if (!ws->has_mode || mode == CORDON_MODE_STRICT)
		ws->mode = mode;
	ws->has_mode = true;
}

/* ---- presets ---- */

static int resolve_preset(const struct cordon_root *root, const struct cordon_preset *preset, struct cordon_extent *ret,
			  struct cordon_errors *errors)
{
	int failed = 0;

	for (size_t i = 0; i < preset->folders.n; i++) {
		const struct cordon_setting *setting = &preset->folders.items[i];

		if (resolve(root, &setting->text, 1, setting->where, ret, errors) < 0)
			failed = -EINVAL;
	}
	return failed;
}

/* The text of the settings says that `inner` narrows `outer`, but a link could lead elsewhere. */
static int check_inside(const struct cordon_extent *inner, const struct cordon_extent *outer,
			const struct cordon_preset *preset, struct cordon_errors *errors)
{
	int failed = 0;

	for (size_t i = 0; i < inner->n; i++) {
		struct cordon_error err;
		bool inside = false;

		for (size_t k = 0; !inside && k < outer->n; k++)
			inside = cordon_path_within(inner->folders[i].path, outer->folders[k].path);
		if (inside)
			continue;
		cordon_fail(&err, -EXDEV, CORDON_KIND_POLICY_DENIED,
			    "the folder %s of the preset %s leads to %s, which is not in what the preset extends",
			    inner->folders[i].text, preset->name, inner->folders[i].path);
		failed = cordon_errors_add(errors, &err, NULL, 0, 0);
	}
	return failed;
}

/* Resolves the folders that a preset has in the end, and checks them against those of each preset that it extends. */
static int resolve_chain(const struct cordon_root *root, const struct cordon_preset *preset, struct cordon_extent *ret,
			 struct cordon_errors *errors)
{
	const struct cordon_preset *first = cordon_preset_with_folders(preset);
	int r = first ? resolve_preset(root, first, ret, errors) : 0;

	for (const struct cordon_preset *at = first; r == 0 && at; at = cordon_preset_with_folders(at->parent)) {
		struct cordon_extent outer CORDON_CLEANUP(cordon_extent_done) = { 0 };

		if (at == first)
			continue;
		/* A folder that only an outer preset names may be missing in this repository. */
		for (size_t i = 0; i < at->folders.n; i++) {
			char path[CORDON_PATH_MAX];

			if (cordon_folder_resolve(root, at->folders.items[i].text, path, NULL) == 0 &&
			    add_folder(&outer, at->folders.items[i].text, path) < 0)
				return no_memory(errors);
		}
		r = check_inside(ret, &outer, first, errors);
	}
	return r;
}

static int narrow_preset(struct cordon_extent *ws, const struct cordon_root *root, const struct cordon_preset *preset,
			 const char *where, struct cordon_errors *errors)
{
	struct cordon_extent named CORDON_CLEANUP(cordon_extent_done) = { 0 };
	const struct cordon_preset *mode = cordon_preset_with_mode(preset);
	int r = resolve_chain(root, preset, &named, errors);

	if (r == 0 && named.n)
		r = narrow(ws, &named, where, errors);
	if (mode)
		cordon_extent_narrow_mode(ws, mode->mode);
	return r;
}

int cordon_extent_narrow_preset(struct cordon_extent *ws, const struct cordon_root *root,
				const struct cordon_settings_file *settings, const char *name,
				struct cordon_errors *errors)
{
	struct cordon_error err = { 0 };

	if (cordon_settings_preset(settings, name, &ws->presets[0], &err) < 0)
		return cordon_errors_add(errors, &err, NULL, 0, 0);
	return narrow_preset(ws, root, ws->presets[0], NULL, errors);
}

int cordon_extent_narrow_prd(struct cordon_extent *ws, const struct cordon_root *root, const struct cordon_prd *prd,
			     const struct cordon_settings_file *settings, struct cordon_errors *errors)
{
	struct cordon_error at = { 0 }, err = { 0 };
	int r = 0;

	if (!prd->has_workspace)
		return 0;
	cordon_error_where(&at, prd->doc->name, prd->workspace->line, prd->workspace->column);
	if (prd->preset && !settings)
		r = cordon_fail(&err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no preset '%s'", prd->preset);
	else if (prd->preset)
		r = cordon_settings_preset(settings, prd->preset, &ws->presets[1], &err);
	if (r < 0)
		return add_error(errors, &err, at.where);
	if (prd->preset)
		r = narrow_preset(ws, root, ws->presets[1], at.where, errors);
	if (r == 0 && prd->n_folders)
		r = cordon_extent_narrow(ws, root, prd->folders, prd->n_folders, at.where, errors);
	if (prd->has_mode)
		cordon_extent_narrow_mode(ws, prd->mode);
	return r;
}

char *cordon_extent_list(const struct cordon_extent *ws)
{
	struct cordon_buf buf autobuf = CORDON_BUF(CORDON_FOLDERS_MAX * (2 * CORDON_PATH_MAX));
	int r = 0;

	for (size_t i = 0; r == 0 && i < ws->n; i++)
		r = cordon_folders_add(&buf, ws->folders[i].text);
	return r < 0 ? NULL : cordon_buf_steal(&buf);
}
