/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a directory through io_uring, past any filter of mkdir: uring DIRECTORY. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct io_uring_params p = { 0 };
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqes;
	char *sq, *cq;
	unsigned int *tail;
	int ring = (int)syscall(SYS_io_uring_setup, 4, &p);

	if (argc != 2)
		return 2;
	printf("setup %s\n", ring < 0 ? strerrorname_np(errno) : "done");
	if (ring < 0) {
		/* The other two calls are doors as well. */
		syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0);
		printf("enter %s\n", strerrorname_np(errno));
		syscall(SYS_io_uring_register, 0, 0, NULL, 0);
		printf("register %s\n", strerrorname_np(errno));
		return 0;
	}
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(*cqes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		  ring, IORING_OFF_CQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		   IORING_OFF_SQES);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_MKDIRAT;
	sqe->fd = AT_FDCWD;
	sqe->addr = (uint64_t)(uintptr_t)argv[1];
	sqe->len = 0755;
	tail = (unsigned int *)(void *)(sq + p.sq_off.tail);
	((unsigned int *)(void *)(sq + p.sq_off.array))[*tail & *(unsigned int *)(void *)(sq + p.sq_off.ring_mask)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return 3;
	cqes = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
	printf("mkdir %s\n", cqes[0].res < 0 ? strerrorname_np(-cqes[0].res) : "done");
	return 0;
}
