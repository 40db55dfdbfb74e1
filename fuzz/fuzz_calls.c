/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes how the hand reads calls: any number, any registers, any memory, in a process that is our own. Whatever it
 * is given, texts end, and no descriptor stays open. The input: the number, six arguments, then the memory to which
 * an argument of the form 0xAA........ points.
 */
#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "sandbox/inside/calls.h"

#define MEMORY_SIZE (3 * 4096)
#define INTO_MEMORY 0xAA000000U

struct input {
	uint16_t nr;
	uint64_t args[6];
} __attribute__((packed));

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Memory that ends right before a page that nobody may read. */
static uint8_t *memory(void)
{
	static uint8_t *pages;

	if (!pages) {
		pages = mmap(NULL, MEMORY_SIZE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert(pages != MAP_FAILED && mprotect(pages + MEMORY_SIZE, 4096, PROT_NONE) == 0);
	}
	return pages;
}

static int next_fd(void)
{
	int fd = fcntl(0, F_DUPFD, 3);

	close(fd);
	return fd;
}

static bool is_op(const char *op)
{
	for (size_t i = 0; cordon_touch_ops[i]; i++)
		if (cordon_streq(cordon_touch_ops[i], op))
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cordon_touch touches[CORDON_TOUCHES_MAX];
	struct seccomp_notif notif = { .id = 1, .pid = (uint32_t)getpid() };
	struct input input;
	uint8_t *at = memory();
	size_t rest, n;
	int before = next_fd();

	if (size < sizeof(input))
		return 0;
	memcpy(&input, data, sizeof(input));
	rest = size - sizeof(input);
	rest = rest > MEMORY_SIZE ? MEMORY_SIZE : rest;
	/* At the end of the memory, so that a text without an end runs into the page behind. */
	memcpy(at + MEMORY_SIZE - rest, data + sizeof(input), rest);
	notif.data.nr = input.nr % 512;
	for (size_t i = 0; i < 6; i++)
		notif.data.args[i] = (input.args[i] & 0xff000000U) == INTO_MEMORY
					     ? (uintptr_t)at + MEMORY_SIZE - rest + (input.args[i] & 0xffff) % (rest + 1)
					     : input.args[i];
	n = cordon_calls_read(&notif, touches);
	assert(n <= CORDON_TOUCHES_MAX);
	for (size_t i = 0; i < n; i++) {
		assert(is_op(touches[i].op));
		assert(memchr(touches[i].text, '\0', sizeof(touches[i].text)));
		assert(memchr(touches[i].path, '\0', sizeof(touches[i].path)));
		assert(!touches[i].known || touches[i].path[0] == '/');
	}
	assert(next_fd() == before);
	return 0;
}
