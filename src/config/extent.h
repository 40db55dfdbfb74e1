/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a folder workspace reaches: its folders and its mode, of which several sources speak (options or variables, presets,
 * and the PRD). The first source says what there is, and each further one may only narrow it: folders intersect, and the
 * stricter mode wins.
 *
 *     struct cordon_extent ws = { 0 };          the whole repository, in no particular mode
 *     r = cordon_extent_narrow_list(&ws, &root, "lib,src", &errors);
 *     r = cordon_extent_narrow_prd(&ws, &root, prd, settings, &errors);
 *
 * Folders are compared by where they lead, after links. An intersection without folders is an error, and so is a folder that
 * is missing or leads out of the repository; those errors are worded as cordon_folder_resolve() does.
 */
#ifndef CORDON_CONFIG_EXTENT_H
#define CORDON_CONFIG_EXTENT_H

#include "config/prd.h"
#include "config/settings_file.h"
#include "policy/folders.h"

struct cordon_extent {
	struct cordon_extent_folder {
		char *text; /* as it was written */
		char *path; /* where it leads, relative to the root; "" is the root itself */
	} * folders;
	size_t n;     /* 0: the whole repository */
	bool limited; /* a source has named folders */
	bool has_mode;
	cordon_mode mode;
	const struct cordon_preset *presets[2]; /* that of the options, and that of the PRD; or NULL */
};

void cordon_extent_done(struct cordon_extent *ws);

/* Each takes folders that one source names, with `where` ("prd.json:3:5"; or NULL) for errors. */
int cordon_extent_narrow(struct cordon_extent *ws, const struct cordon_root *root, const char *const *folders, size_t n,
			 const char *where, struct cordon_errors *errors);
/* The same for a list of folders separated by commas. */
int cordon_extent_narrow_list(struct cordon_extent *ws, const struct cordon_root *root, const char *list,
			      struct cordon_errors *errors);
/* All the folders of a preset and of those that it extends, and its mode. */
int cordon_extent_narrow_preset(struct cordon_extent *ws, const struct cordon_root *root,
				const struct cordon_settings_file *settings, const char *name,
				struct cordon_errors *errors);
/* What the PRD says under "workspace". Its preset gives folders, mode and protection, but no variables. `settings` may be
 * NULL when the PRD names no preset. */
int cordon_extent_narrow_prd(struct cordon_extent *ws, const struct cordon_root *root, const struct cordon_prd *prd,
			     const struct cordon_settings_file *settings, struct cordon_errors *errors);
void cordon_extent_narrow_mode(struct cordon_extent *ws, cordon_mode mode);

/* The folders as a list separated by commas, with commas in names escaped; the caller frees it. NULL without memory. */
char *cordon_extent_list(const struct cordon_extent *ws);

#endif
