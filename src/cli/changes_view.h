/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the changes of a view to a person or a program: as a list, as a diff, as counts, as JSON; and asks about hunks. */
#ifndef CORDON_CLI_CHANGES_VIEW_H
#define CORDON_CLI_CHANGES_VIEW_H

#include "cli/cli.h"
#include "view/show.h"

typedef enum cordon_changes_form {
	CORDON_CHANGES_DIFF,
	CORDON_CHANGES_STAT,
	CORDON_CHANGES_NAME_STATUS,
} cordon_changes_form;

/* Where text for people goes: to stdout, or to a pager in front of it. On a terminal, it is coloured, and control
 * characters of the agent are escaped. */
struct cordon_pager {
	int fd;
	pid_t pid; /* or 0 */
	bool terminal, colour;
	int failed; /* -errno of the first write that failed; EPIPE is no failure */
};

void cordon_pager_open(const struct cordon_cli *cli, bool wanted, struct cordon_pager *ret_pager);
void cordon_pager_write(struct cordon_pager *pager, const char *bytes, size_t n);
/* Waits for the pager. Returns the exit code. */
int cordon_pager_close(const struct cordon_cli *cli, struct cordon_pager *pager);

/* Shows the changes at `paths` (none: all), what the host would execute first. */
int cordon_changes_show(const struct cordon_cli *cli, const struct cordon_delta *delta, cordon_changes_form form,
			const char *const *paths, size_t n_paths, bool page);

/* For `apply -p`: asks on stdout and reads the answers from stdin. */
struct cordon_picker {
	const struct cordon_view *view;
	bool terminal;
	bool rest; /* the person said yes or no to all that follows */
	bool rest_yes;
};
int cordon_picker_ask(void *data, const struct cordon_delta *delta, const struct cordon_delta_change *change,
		      cordon_pick *ret_pick, struct cordon_buf *ret_content, struct cordon_error *err);

#endif
