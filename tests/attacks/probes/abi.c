/* SPDX-License-Identifier: Apache-2.0 */
/* Enters the kernel by another ABI: abi x32|i386 NUMBER [STRING|NUMBER]... prints what came back. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static long x32(long nr, const long *a)
{
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr | 0x40000000), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return r;
}

static long i386(long nr, const long *a)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4])
			 : "r8", "r9", "r10", "r11", "memory");
	return r;
}

int main(int argc, char **argv)
{
	/* Strings where a 32-bit pointer reaches them. */
	char *low = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long args[5] = { 0 };
	long r;

	if (argc < 3 || low == MAP_FAILED)
		return 2;
	for (int i = 3; i < argc && i < 8; i++) {
		char *end;

		args[i - 3] = strtol(argv[i], &end, 0);
		if (*end) {
			strncpy(low + 4096 * i, argv[i], 4095);
			args[i - 3] = (long)(uintptr_t)(low + 4096 * i);
		}
	}
	r = argv[1][0] == 'x' ? x32(strtol(argv[2], NULL, 0), args) : i386(strtol(argv[2], NULL, 0), args);
	printf("returned %ld\n", r);
	return 0;
}
