/* SPDX-License-Identifier: Apache-2.0 */
/* BPF programs that grow by one instruction at a time, and a balanced search in them. Part of seccomp_gen.c. */
#ifndef CORDON_SANDBOX_INSIDE_SECCOMP_CODE_H
#define CORDON_SANDBOX_INSIDE_SECCOMP_CODE_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_MAX = 4096 };

struct code {
	struct sock_filter at[CODE_MAX];
	size_t n;
};

static void fail(const char *what, const char *name)
{
	fprintf(stderr, "seccomp_gen: %s: %s\n", what, name);
	exit(1);
}

static void emit(struct code *code, uint16_t op, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (code->n == CODE_MAX)
		fail("program too long", "more than 4096 instructions");
	code->at[code->n++] = (struct sock_filter){ op, jt, jf, k };
}

static void emit_return(struct code *code, uint32_t k)
{
	emit(code, BPF_RET | BPF_K, 0, 0, k);
}

static void emit_errno(struct code *code, int error)
{
	emit_return(code, SECCOMP_RET_ERRNO | (uint32_t)error);
}

/* Loads the low half of an argument; the targets are little-endian (main() checks it). */
static void emit_load_arg(struct code *code, unsigned int arg)
{
	emit(code, BPF_LD | BPF_W | BPF_ABS, 0, 0,
	     (uint32_t)(offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t)));
}

/* The code for the numbers from `first` up to that of the next leaf. */
struct leaf {
	uint32_t first;
	struct code *code;
};

/* A conditional jump reaches 255 instructions; further ones need a second instruction. */
enum { JUMP_MAX = 255 };

static size_t search_size(const struct leaf *leaves, size_t n)
{
	size_t left;

	if (n == 1)
		return leaves->code->n;
	left = search_size(leaves, n / 2);
	return left + (left <= JUMP_MAX ? 1 : 2) + search_size(leaves + n / 2, n - n / 2);
}

/* Emits a balanced search: "number >= first of the right half?" */
static void emit_search(struct code *code, const struct leaf *leaves, size_t n)
{
	size_t half = n / 2, left;

	if (n == 1) {
		for (size_t i = 0; i < leaves->code->n; i++) {
			const struct sock_filter *f = &leaves->code->at[i];

			emit(code, f->code, f->jt, f->jf, f->k);
		}
		return;
	}
	left = search_size(leaves, half);
	if (left <= JUMP_MAX) {
		emit(code, BPF_JMP | BPF_JGE | BPF_K, (uint8_t)left, 0, leaves[half].first);
	} else {
		emit(code, BPF_JMP | BPF_JGE | BPF_K, 0, 1, leaves[half].first);
		emit(code, BPF_JMP | BPF_JA, 0, 0, (uint32_t)left);
	}
	emit_search(code, leaves, half);
	emit_search(code, leaves + half, n - half);
}

static bool same_code(const struct code *a, const struct code *b)
{
	return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof(a->at[0])) == 0;
}

static void add_leaf(struct leaf *leaves, size_t *n, uint32_t first, const struct code *made)
{
	if (*n > 0 && same_code(leaves[*n - 1].code, made))
		return; /* neighbours with the same code are one range */
	leaves[*n].first = first;
	leaves[*n].code = malloc(sizeof(*made));
	if (!leaves[*n].code)
		fail("out of memory", "leaf");
	*leaves[*n].code = *made;
	(*n)++;
}

static void free_leaves(struct leaf *leaves, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(leaves[i].code);
}

#endif
