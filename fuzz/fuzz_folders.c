/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes folder lists: a list that was split can be joined and split again, and no folder resolves to a place
 * outside. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "policy/folders.h"

#define FEW_FOLDERS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/cordon-fuzz-XXXXXX";

static void remove_tree(void)
{
	if (chdir(dir) == 0) {
		unlink("out");
		unlink("a/alias");
		rmdir("a/b");
		rmdir("a");
		rmdir(dir);
	}
}

/* A small tree with a link that stays inside and one that does not. */
static const struct cordon_root *tree(void)
{
	static struct cordon_root root = { .fd = -1 };
	int r;

	if (root.fd >= 0)
		return &root;
	if (!mkdtemp(dir))
		abort();
	r = cordon_root_open(dir, &root, NULL);
	if (r < 0 || mkdirat(root.fd, "a", 0755) < 0 || mkdirat(root.fd, "a/b", 0755) < 0 ||
	    symlinkat("../a", root.fd, "a/alias") < 0 || symlinkat("/", root.fd, "out") < 0)
		abort();
	atexit(remove_tree);
	return &root;
}

static void check_resolve(const struct cordon_folders *folders)
{
	for (size_t i = 0; i < folders->n && i < FEW_FOLDERS; i++) {
		char path[CORDON_PATH_MAX];
		struct cordon_error err = { 0 };
		int r = cordon_folder_resolve(tree(), folders->items[i], path, &err);

		if (r < 0)
			assert(err.code == r && err.message[0]);
		else
			assert(cordon_streq(path, "") || cordon_streq(path, "a") || cordon_streq(path, "a/b"));
	}
}

/* When the items are joined with escaped commas, the result is the same list. */
static void check_join(const struct cordon_folders *folders)
{
	autobuf struct cordon_buf list = CORDON_BUF(SIZE_MAX / 2);
	struct cordon_folders again = { 0 };
	int r;

	for (size_t i = 0; i < folders->n; i++) {
		const char *item = folders->items[i];

		/* A list cannot contain an item that ends with a backslash, because a comma follows it. */
		if (item[strlen(item) - 1] == '\\')
			return;
		if (i && cordon_buf_addc(&list, ',') < 0)
			abort();
		for (const char *p = item; *p; p++)
			if ((*p == ',' && cordon_buf_addc(&list, '\\') < 0) || cordon_buf_addc(&list, *p) < 0)
				abort();
	}
	r = cordon_folders_parse(list.data, &again, NULL);
	assert(r == 0 && again.n == folders->n);
	for (size_t i = 0; i < again.n; i++)
		assert(cordon_streq(again.items[i], folders->items[i]));
	cordon_folders_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autobuf struct cordon_buf list = CORDON_BUF(SIZE_MAX / 2);
	struct cordon_folders folders = { 0 };
	struct cordon_error err = { 0 };
	int r;

	if (cordon_buf_add(&list, data, size) < 0)
		abort();
	r = cordon_folders_parse(list.data, &folders, &err);
	if (r < 0) {
		assert(r == -EINVAL && err.kind == CORDON_KIND_USAGE && err.message[0]);
		return 0;
	}
	assert(folders.n > 0 && folders.n <= CORDON_FOLDERS_MAX);
	check_join(&folders);
	check_resolve(&folders);
	cordon_folders_done(&folders);
	return 0;
}
