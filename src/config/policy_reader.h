/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read a policy file share: the reader, a row for each key, and reading of common values. */
#ifndef CORDON_CONFIG_POLICY_READER_H
#define CORDON_CONFIG_POLICY_READER_H

#include "config/policy_file.h"
#include "config/reader.h"

struct cordon_policy_reader {
	struct cordon_reader in;
	const struct cordon_policy_trust *trust;
	struct cordon_policy_file *file;
};

struct cordon_policy_key;

/* Readers and checks return 0 also for a bad value, which they report; -ENOMEM stops the reading. */
typedef int cordon_policy_read_fn(struct cordon_policy_reader *reader, const struct cordon_node *node,
				  const struct cordon_policy_key *key);
typedef int cordon_policy_check_fn(const char *text, struct cordon_error *err);

struct cordon_policy_key {
	const char *name;
	cordon_policy_read_fn *read;
	size_t slot; /* of the value in struct cordon_policy_file */
	cordon_policy_check_fn *check;
	const struct cordon_recipe_row *row; /* of the table of a run; NULL for keys of inner mappings */
};

static inline void *cordon_policy_slot(const struct cordon_policy_reader *reader, size_t slot)
{
	return (char *)reader->file + slot;
}

/* A clean copy of a path, in the memory of the document. */
char *cordon_policy_keep_path(struct cordon_policy_reader *reader, const char *path);
int cordon_policy_take_text(struct cordon_policy_reader *reader, const struct cordon_node *node,
			    const struct cordon_policy_key *key, struct cordon_setting *ret_setting);
cordon_policy_read_fn cordon_policy_read_list;
int cordon_policy_read_keys(struct cordon_policy_reader *reader, const struct cordon_node *mapping,
			    const struct cordon_policy_key *keys, size_t n);
cordon_policy_check_fn cordon_policy_check_absolute, cordon_policy_check_protected;

/* policy_home.c. Expands a path that begins with ~ to a path of the host; *path is unchanged when it does not. */
int cordon_policy_expand_home(const struct cordon_policy_reader *reader, const char **path,
			      char ret[static CORDON_PATH_MAX], struct cordon_error *err);
cordon_policy_read_fn cordon_policy_read_private, cordon_policy_read_state, cordon_policy_read_names;

#endif
