/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor measures the memory of a whole run where no control group limits it. It starts no process, and reads
 * only what belongs to the run.
 *
 * What counts is what the kernel could not simply drop:
 *
 *   private memory of all processes, and what of it was swapped
 *   shared memory: mappings without a file, memfds (mapped or only open), System V segments
 *   files in the private file systems (/tmp, /run, /dev/shm and the private home)
 *
 * Each page counts once, however many processes have it. Pages of other files do not count: they are the cache of a
 * disk. Nor does memory that the kernel uses for the run (page tables, buffers of pipes and sockets).
 *
 * A look first takes an upper bound from numbers that the kernel keeps anyway. Only when that exceeds the limit, it
 * reads every mapping, which takes a lock of the process and longer. Looks follow each other closely when memory is
 * short, and otherwise less often; they take at most about a twentieth of one processor. Between two looks a run may
 * exceed its limit.
 */
#ifndef CORDON_SANDBOX_HOST_MEMORY_H
#define CORDON_SANDBOX_HOST_MEMORY_H

#include <sys/types.h>

#include "base/util.h"
#include "sandbox/inside/limits.h"

struct cordon_memory;

/* NULL when there is no memory. `first` is the run's first process. With `whole` it has a pid namespace, and its PID 1
 * passes descriptors; else the run is that process and those below it. */
struct cordon_memory *cordon_memory_new(uint64_t limit, pid_t first, bool whole);
struct cordon_memory *cordon_memory_free(struct cordon_memory *memory);
/* Takes the descriptor. */
void cordon_memory_take(struct cordon_memory *memory, enum cordon_memory_fd which, int fd);

/* The time of the next look, CLOCK_MONOTONIC in ms; 0: there is nothing to look at yet. */
uint64_t cordon_memory_due(const struct cordon_memory *memory);
/* How much the run uses: exactly when this exceeds the limit, else at most. `own` is a descriptor of the private file
 * systems, or -1. Holds no lock and may take a while. */
uint64_t cordon_memory_look(struct cordon_memory *memory, int own);

#endif
