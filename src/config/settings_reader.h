/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read config.yaml and orchestrator.yaml share: one row per key, and readers of common values. */
#ifndef CORDON_CONFIG_SETTINGS_READER_H
#define CORDON_CONFIG_SETTINGS_READER_H

#include "config/reader.h"
#include "config/settings_file.h"

struct cordon_settings_reader {
	struct cordon_reader in;
	struct cordon_settings_file *settings; /* NULL for other files */
};

/* Readers return 0 also for a bad value, which they report; -ENOMEM stops the reading. `data` is what is being filled. */
typedef int cordon_settings_read_fn(struct cordon_settings_reader *reader, const struct cordon_node *node, void *data);

/* A key without a reader is kept, and has no effect. The table ends with a NULL name. */
struct cordon_settings_key {
	const char *name;
	cordon_settings_read_fn *read;
};

/* Whether the node is empty, as `key:` is. It counts as an empty collection. */
bool cordon_settings_is_none(const struct cordon_node *node);
/* A copy in the memory of the document; NULL without memory. */
const char *cordon_settings_keep(const struct cordon_settings_reader *reader, const char *text);

/* Reads a mapping whose keys are known; an unknown key is an error at its place. `what` names the mapping. */
int cordon_settings_read_keys(struct cordon_settings_reader *reader, const struct cordon_node *mapping,
			      const char *what, const struct cordon_settings_key *keys, void *data);
/* Reads a mapping from ids to values: *ret_items has one struct of `size` bytes for each, in the memory of the document.
 * `id` is what an error calls the key: "the id of an orchestrator". */
int cordon_settings_read_each(struct cordon_settings_reader *reader, const struct cordon_node *mapping,
			      const char *what, const char *id, size_t size, cordon_settings_read_fn *read,
			      void **ret_items, size_t *ret_n);

/* Text that is not empty; an id; an absolute path and where it leads. The outputs are unchanged after an error. */
int cordon_settings_read_text(struct cordon_settings_reader *reader, const struct cordon_node *node, const char *what,
			      const char **ret_text);
int cordon_settings_read_id(struct cordon_settings_reader *reader, const struct cordon_node *node, const char *what,
			    const char *kind, const char **ret_id);
int cordon_settings_read_path(struct cordon_settings_reader *reader, const struct cordon_node *node, const char *what,
			      const char **ret_given, const char **ret_path);

/* Names of variables, or beginnings of names with a star; the words of a command, which are copies, because argv of a
 * program can be written. `what` is the key; `example` is a hint. */
int cordon_settings_read_env_pass(struct cordon_settings_reader *reader, const struct cordon_node *list,
				  struct cordon_setting_list *ret_list);
int cordon_settings_read_command(struct cordon_settings_reader *reader, const struct cordon_node *list,
				 const char *what, const char *example, char ***ret_command);
/* Texts with their places. */
int cordon_settings_read_list(struct cordon_settings_reader *reader, const struct cordon_node *list, const char *what,
			      struct cordon_setting_list *ret_list);

/* settings_presets.c: defaults.presets and defaults.validation_hooks. */
int cordon_settings_read_presets(struct cordon_settings_reader *reader, const struct cordon_node *node);
int cordon_settings_read_hooks(struct cordon_settings_reader *reader, const struct cordon_node *node);

/* settings_read.c. Reads the whole document. Returns 0 also when there were errors, and -ENOMEM. */
int cordon_settings_read(struct cordon_settings_file *settings, struct cordon_errors *errors);
/* settings_defaults.c. `node` may be NULL. */
int cordon_settings_read_defaults(struct cordon_settings_reader *reader, const struct cordon_node *node);

#endif
