/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes: cmocka, and a temporary directory that is removed with all it holds. */
#ifndef CORDON_TESTS_UNIT_H
#define CORDON_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define UNIT_PATH 256

/* The directory of the running test; unit_setup() fills it and makes it the current one. */
static char unit_dir[UNIT_PATH];

static inline int unit_setup(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	snprintf(unit_dir, sizeof(unit_dir), "%s/cordon-unit-XXXXXX", base && *base == '/' ? base : "/tmp");
	return mkdtemp(unit_dir) && chdir(unit_dir) == 0 ? 0 : -1;
}

static inline int unit_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline int unit_teardown(void **state)
{
	(void)state;
	return chdir("/") == 0 && nftw(unit_dir, unit_remove, 16, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : -1;
}

/* A test that wants unit_dir: `unit_test_in_dir(name)` in the table. */
#define unit_test_in_dir(name) cmocka_unit_test_setup_teardown(name, unit_setup, unit_teardown)

static inline void unit_mkdir(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
}

static inline void unit_link(const char *target, const char *path)
{
	assert_int_equal(symlink(target, path), 0);
}

static inline void unit_write(const char *path, const char *text)
{
	autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n = (ssize_t)strlen(text);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, (size_t)n), n);
}

#endif
