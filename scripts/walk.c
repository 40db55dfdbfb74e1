/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into a build with -finstrument-functions by `scripts/house --walks`: notes each function that is called, once, in the
 * file WALK_FILE. The file is shared with every process that is forked, and without it nothing is noted.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 65536U /* of the file, each an offset in the executable */

extern const char __executable_start[];
static uint64_t *slots;

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

__attribute__((constructor, no_instrument_function)) static void begin(void)
{
	int fd = open(WALK_FILE, O_RDWR | O_CLOEXEC);
	void *shared = MAP_FAILED;

	if (fd >= 0)
		shared = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	slots = shared == MAP_FAILED ? NULL : shared;
}

__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *function, void *caller)
{
	uint64_t offset = (uint64_t)((uintptr_t)function - (uintptr_t)__executable_start);

	(void)caller;
	for (uint64_t i = 0, at = offset >> 4; slots && i < SLOTS; i++, at++) {
		uint64_t free_slot = 0;

		if (__atomic_load_n(&slots[at % SLOTS], __ATOMIC_RELAXED) == offset ||
		    __atomic_compare_exchange_n(&slots[at % SLOTS], &free_slot, offset, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED) ||
		    free_slot == offset)
			return;
	}
}

__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function, (void)caller;
}
