/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which ioctl requests the filter lets pass: with a bad descriptor the kernel answers EBADF, the filter ENOTTY.
 *
 * ioctls REQUEST...: tries each request with every other size and direction, every request with the upper half of one of
 * these, every request without one, and a million others. Prints each that passes, then "tried N".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long tried;

static int passes(uint64_t request)
{
	tried++;
	return syscall(SYS_ioctl, -1, request, NULL) < 0 && errno == EBADF;
}

static void look(uint32_t request)
{
	int plain = passes(request);

	if (plain)
		printf("%x\n", request);
	if ((request & 0xff) == 0 || plain)
		for (int bit = 32; bit < 64; bit++)
			if (passes(request | UINT64_C(1) << bit) != plain)
				printf("upper half %x\n", request);
}

int main(int argc, char **argv)
{
	uint64_t random = 88172645463325252U;

	for (uint32_t low = 0; low < 65536; low++)
		look(low);
	for (int i = 1; i < argc; i++) {
		uint32_t request = (uint32_t)strtoul(argv[i], NULL, 0);

		for (uint32_t other = 0; other < 65536; other++)
			look((request & 0xffff) | other << 16);
		for (uint32_t other = 0; request >> 16 && other < 65536; other++)
			look((request & 0xffff0000) | other);
	}
	for (int i = 0; i < 1000000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		look((uint32_t)random);
	}
	printf("tried %lu\n", tried);
	return 0;
}
