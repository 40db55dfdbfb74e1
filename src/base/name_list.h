/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a directory, sorted, each of them allocated. */
#ifndef CORDON_BASE_NAME_LIST_H
#define CORDON_BASE_NAME_LIST_H

#include "base/util.h"

struct cordon_name_list {
	char **name;
	size_t n, cap;
};

#define autonames CORDON_CLEANUP(cordon_name_list_done)

void cordon_name_list_done(struct cordon_name_list *names);
/* Adds the names of a directory but "." and "..", and sorts them all. 0 or -errno. */
int cordon_name_list_read(int dir_fd, struct cordon_name_list *names);
void cordon_name_list_sort(struct cordon_name_list *names);

#endif
