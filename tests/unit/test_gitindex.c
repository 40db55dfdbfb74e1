/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of git's index: with an index that git wrote, and with damaged ones. */
#include "unit.h"

#include <sys/wait.h>

#include "base/buf.h"
#include "base/io.h"
#include "protect/gitindex.h"

static int note(void *data, const char *path, uint32_t mode)
{
	return (mode & CORDON_GITINDEX_TYPE) == CORDON_GITINDEX_GITLINK ? cordon_buf_addf(data, "%s\n", path) : 0;
}

static int count(void *data, const char *path, uint32_t mode)
{
	(void)mode;
	*(size_t *)data += *path != '\0';
	return 0;
}

static void make(const char *script)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* An index with 100 files and two gitlinks, as git makes it. */
static void make_index(const char *format, const char *version)
{
	char script[1024];

	snprintf(script, sizeof(script),
		 "rm -rf r; git init -q --object-format=%s r; cd r; mkdir -p a/b; for i in $(seq 100); do echo $i >a/b/file$i; done; git add a; "
		 "h=$(git hash-object -w a/b/file1); git update-index --add --cacheinfo 160000,$h,sub/one --cacheinfo 160000,$h,z; "
		 "git update-index --index-version %s",
		 format, version);
	make(script);
}

static int parse(const char *path, struct cordon_buf *bytes, struct cordon_buf *found,
		 char shared[static CORDON_GITINDEX_SHARED_SIZE])
{
	cordon_buf_reset(bytes);
	cordon_buf_reset(found);
	assert_int_equal(cordon_read_file(AT_FDCWD, path, 0, bytes, NULL), 0);
	return cordon_gitindex_parse(bytes->data, bytes->len, note, found, shared);
}

static void gitlinks_are_found_in_every_version_and_hash(void **state)
{
	static const char *const formats[] = { "sha1", "sha256" }, *const versions[] = { "2", "4" };
	autobuf struct cordon_buf bytes = CORDON_BUF(1 << 20);
	autobuf struct cordon_buf found = CORDON_BUF(1 << 16);
	char shared[CORDON_GITINDEX_SHARED_SIZE];
	size_t entries = 0;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < 2; k++) {
			make_index(formats[i], versions[k]);
			assert_int_equal(parse("r/.git/index", &bytes, &found, shared), 0);
			assert_int_equal(cordon_gitindex_parse(bytes.data, bytes.len, count, &entries, shared), 0);
			assert_string_equal(found.data, "sub/one\nz\n");
			assert_string_equal(shared, "");
			assert_int_equal(entries, 102);
			entries = 0;
			/* With --intent-to-add an entry has more flags (version 3). */
			make("cd r; git update-index --index-version 2; echo x >a/new; git add -N a/new");
			assert_int_equal(parse("r/.git/index", &bytes, &found, shared), 0);
			assert_string_equal(found.data, "sub/one\nz\n");
		}
	}
}

static void a_split_index_names_its_other_half(void **state)
{
	autobuf struct cordon_buf bytes = CORDON_BUF(1 << 20);
	autobuf struct cordon_buf found = CORDON_BUF(1 << 16);
	char shared[CORDON_GITINDEX_SHARED_SIZE], path[256], none[CORDON_GITINDEX_SHARED_SIZE];

	(void)state;
	make_index("sha1", "2");
	make("cd r; git update-index --split-index");
	assert_int_equal(parse("r/.git/index", &bytes, &found, shared), 0);
	assert_int_equal(strncmp(shared, "sharedindex.", 12), 0);
	assert_int_equal(strlen(shared), 12 + 40);
	snprintf(path, sizeof(path), "r/.git/%s", shared);
	assert_int_equal(parse(path, &bytes, &found, none), 0);
	assert_string_equal(found.data, "sub/one\nz\n");
}

static void what_is_no_index_yields_nothing(void **state)
{
	autobuf struct cordon_buf bytes = CORDON_BUF(1 << 20);
	autobuf struct cordon_buf found = CORDON_BUF(1 << 16);
	char shared[CORDON_GITINDEX_SHARED_SIZE];

	(void)state;
	for (unsigned int version = 2; version <= 4; version += 2) {
		make_index("sha1", version == 2 ? "2" : "4");
		assert_int_equal(parse("r/.git/index", &bytes, &found, shared), 0);
		/* Cut the index anywhere, in memory of exactly that size, so that a sanitizer notices a read of one
		 * byte too many. */
		for (size_t n = 0; n < bytes.len; n += 1 + n / 200) {
			autofree char *cut = malloc(n ? n : 1);

			assert_non_null(cut);
			memcpy(cut, bytes.data, n);
			cordon_buf_reset(&found);
			(void)cordon_gitindex_parse(cut, n, note, &found, shared);
		}
		/* Damage the index anywhere: the reader must return, with any answer. */
		for (size_t at = 4; at < bytes.len; at += 3) {
			char was = bytes.data[at];

			bytes.data[at] = (char)~was;
			cordon_buf_reset(&found);
			(void)cordon_gitindex_parse(bytes.data, bytes.len, note, &found, shared);
			bytes.data[at] = was;
		}
	}
	assert_int_equal(cordon_gitindex_parse("", 0, note, &found, shared), -EBADMSG);
	assert_int_equal(cordon_gitindex_parse("DIRC\0\0\0\5\0\0\0\0", 12, note, &found, shared), -EBADMSG);
	assert_int_equal(cordon_gitindex_parse("DIRC\0\0\0\2\xff\xff\xff\xff", 12, note, &found, shared), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gitlinks_are_found_in_every_version_and_hash, unit_setup, unit_teardown),
		cmocka_unit_test_setup_teardown(a_split_index_names_its_other_half, unit_setup, unit_teardown),
		cmocka_unit_test_setup_teardown(what_is_no_index_yields_nothing, unit_setup, unit_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
