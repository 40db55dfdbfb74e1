/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the names of a whole directory, sorted. */
#include "base/name_list.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/path.h"

void cordon_name_list_done(struct cordon_name_list *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->name[i]);
	free(names->name);
	*names = (struct cordon_name_list){ 0 };
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void cordon_name_list_sort(struct cordon_name_list *names)
{
	if (names->n)
		qsort(names->name, names->n, sizeof(*names->name), by_name);
}

int cordon_name_list_read(int dir_fd, struct cordon_name_list *names)
{
	int fd = openat(dir_fd, ".", CORDON_OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (!dir) {
		r = -errno;
		cordon_closep(&fd);
		return r;
	}
	for (struct dirent *entry; r == 0 && (errno = 0, entry = readdir(dir));) {
		if (cordon_streq(entry->d_name, ".") || cordon_streq(entry->d_name, ".."))
			continue;
		if (names->n == names->cap) {
			size_t cap = names->cap ? 2 * names->cap : 32;
			char **more = reallocarray(names->name, cap, sizeof(*more));

			if (!more) {
				r = -ENOMEM;
				break;
			}
			names->name = more;
			names->cap = cap;
		}
		names->name[names->n] = strdup(entry->d_name);
		if (!names->name[names->n])
			r = -ENOMEM;
		else
			names->n++;
	}
	if (r == 0 && errno)
		r = -errno;
	closedir(dir);
	if (r == 0)
		cordon_name_list_sort(names);
	return r;
}
