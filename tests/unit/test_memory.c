/* SPDX-License-Identifier: Apache-2.0 */
/* What the watcher of memory counts, and what it counts once. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "sandbox/host/memory.h"

#define MIB ((size_t)1 << 20)
#define PART (64 * MIB)
/* One part fits, with what a sanitizer needs; two parts do not. */
#define LIMIT (PART + PART * 3 / 4)

static void touch(char *at)
{
	for (size_t i = 0; i < PART; i += 4096)
		at[i]++;
}

static char *take(int flags)
{
	char *at = mmap(NULL, PART, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(99);
	touch(at);
	return at;
}

_Noreturn static void sleep_on(int ready)
{
	if (write(ready, "x", 1) != 1)
		_exit(99);
	for (;;)
		pause();
}

/* Starts `body`, waits until `n` processes of it are ready, and returns what they use together. */
static uint64_t use_of(void (*body)(int ready), int n)
{
	struct cordon_memory *memory;
	uint64_t used;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		setpgid(0, 0);
		body(ready[1]);
		sleep_on(ready[1]);
	}
	for (int i = 0; i < n; i++)
		assert_int_equal(read(ready[0], &byte, 1), 1);
	memory = cordon_memory_new(LIMIT, pid, false);
	assert_non_null(memory);
	assert_true(cordon_memory_due(memory) > 0);
	used = cordon_memory_look(memory, -1);
	assert_null(cordon_memory_free(memory));
	kill(-pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(ready[0]);
	close(ready[1]);
	return used;
}

static void one(int ready)
{
	(void)ready;
	take(MAP_PRIVATE);
}

static void copies(int ready)
{
	take(MAP_PRIVATE);
	for (int i = 0; i < 3; i++)
		if (fork() == 0)
			sleep_on(ready);
}

static void changed_copies(int ready)
{
	char *at = take(MAP_PRIVATE);

	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			touch(at);
			sleep_on(ready);
		}
}

static void one_each(int ready)
{
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			take(MAP_PRIVATE);
			sleep_on(ready);
		}
}

static void shared(int ready)
{
	char *at = take(MAP_SHARED);

	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			touch(at);
			sleep_on(ready);
		}
}

static void open_file(int ready)
{
	static char page[4096];
	int fd = memfd_create("x", 0);

	(void)ready;
	for (size_t i = 0; i < 2 * PART; i += sizeof(page))
		if (write(fd, page, sizeof(page)) != sizeof(page))
			_exit(99);
}

static int wait_in_child(void *data)
{
	sleep_on(*(int *)data);
}

/* A child that has its parent's memory until its exec, which here never comes. */
static void borrowed(int ready)
{
	static _Alignas(16) char stack[64 << 10];

	take(MAP_PRIVATE);
	clone(wait_in_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &ready);
}

static void what_one_process_takes_counts(void **state)
{
	(void)state;
	assert_in_range(use_of(one, 1), PART, LIMIT);
}

static void what_processes_share_counts_once(void **state)
{
	(void)state;
	assert_in_range(use_of(copies, 4), PART, LIMIT);
	assert_in_range(use_of(shared, 4), PART, LIMIT);
	assert_in_range(use_of(borrowed, 1), PART, LIMIT);
}

static void what_each_process_has_for_itself_is_added(void **state)
{
	(void)state;
	assert_true(use_of(one_each, 4) > LIMIT);
	assert_true(use_of(changed_copies, 4) > LIMIT);
}

static void what_a_descriptor_alone_keeps_counts(void **state)
{
	(void)state;
	assert_true(use_of(open_file, 1) > LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_process_takes_counts),
		cmocka_unit_test(what_processes_share_counts_once),
		cmocka_unit_test(what_each_process_has_for_itself_is_added),
		cmocka_unit_test(what_a_descriptor_alone_keeps_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
