/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log on disk: a chain of lines over several files, to which many processes append.
 *
 *   state/audit/audit.jsonl          the file that is written
 *   state/audit/audit-000001.jsonl   earlier ones, oldest first
 *   state/audit/head                 one line: record number, file number, size and last hash; also the lock
 *   state/audit/calls/               the same files for the records of calls
 *
 * The head is written in place after each record. It saves reading the log before an append, and it shows when the
 * end of the log was cut off. A writer that finds that log and head differ repairs this: it takes over complete
 * records that continue the chain (their writer died before it wrote the head). It leaves anything else where it is,
 * and a `repaired` record says what was found. Nothing that is in the log is ever changed or removed.
 *
 * Rotation writes the head first (file + 1, size 0) and then renames: the next writer after a crash in between finds
 * size 0 and finishes. The first record of a file is `rotated`; its prev is the last hash of the file before.
 */
#ifndef CORDON_AUDIT_CHAIN_H
#define CORDON_AUDIT_CHAIN_H

#include "audit/record.h"

#define CORDON_CHAIN_LOG "audit.jsonl"
#define CORDON_CHAIN_CALLS_KEEP 3 /* earlier files of calls: with the current one 256 MiB in all */
#define CORDON_CHAIN_NAME_SIZE 40
#define CORDON_CHAIN_ROTATE (64 << 20) /* bytes at which a new file begins */
#define CORDON_CHAIN_KEEP 15	       /* earlier files that are kept: with the current one 1 GiB in all */
#define CORDON_CHAIN_KEEP_MAX 256
#define CORDON_CHAIN_LOCK_MS 5000 /* how long to wait for another process */

struct cordon_chain_head {
	uint64_t seq;  /* number of the last record, 0 before the first */
	uint64_t file; /* the number that audit.jsonl will get; starts at 1 */
	uint64_t size; /* of audit.jsonl */
	char hash[CORDON_AUDIT_HASH_SIZE];
};

struct cordon_chain {
	int dir_fd, head_fd, log_fd;
	uint64_t file; /* the number of the file that log_fd is */
	uint64_t rotate;
	unsigned int keep;
	int64_t wait_ms; /* for the lock */
	bool open_line;	 /* under the lock: the log ends without a newline */
	bool made;	 /* this handle made a file, so the directory must be synced too */
};

int cordon_chain_open(const struct cordon_home *home, struct cordon_chain *ret_chain, struct cordon_error *err);
/* Opens the log of calls beside another one: state/audit/calls, a chain of its own with the same files. INVARIANT: it
 * has bounds of its own, so that calls, which clients make in any number, never push out a record of anything else. */
int cordon_chain_open_calls(const struct cordon_chain *main, struct cordon_chain *ret_chain, struct cordon_error *err);
/* Where a log is, below state/. */
const char *cordon_chain_dir(bool calls);
void cordon_chain_done(struct cordon_chain *chain);
/* Appends one record with this body (record.h). A failure leaves the log as it was. */
int cordon_chain_append(struct cordon_chain *chain, const char *body, size_t n, struct cordon_error *err);
int cordon_chain_sync(struct cordon_chain *chain);

/* What readers see of the log: all files, opened at one moment under the lock, the oldest first and the current one
 * last (it is always listed; its fd is -1 when the file does not exist). */
struct cordon_chain_file {
	uint64_t number;
	int fd;
	off_t size;
	int64_t modified; /* milliseconds since 1970 */
	char name[CORDON_CHAIN_NAME_SIZE];
};

typedef enum cordon_head_state { CORDON_HEAD_GOOD, CORDON_HEAD_MISSING, CORDON_HEAD_DAMAGED } cordon_head_state;

struct cordon_chain_view {
	cordon_head_state state;
	struct cordon_chain_head head;
	struct cordon_chain_file *files;
	size_t n_files;
};

#define autochain CORDON_CLEANUP(cordon_chain_view_done)

/* Files with a number below `from` are listed but not opened. */
int cordon_chain_view(int dir_fd, uint64_t from, struct cordon_chain_view *ret_view, struct cordon_error *err);
void cordon_chain_view_done(struct cordon_chain_view *view);

/* Whether the whole file is older than wanted. The file's time is taken from the same clock as the record's and
 * after it, but in coarser steps. */
static inline bool cordon_chain_file_before(const struct cordon_chain_file *file, bool has_since, int64_t since)
{
	return has_since && file->modified + 1000 < since;
}

void cordon_chain_name(uint64_t number, char ret[static CORDON_CHAIN_NAME_SIZE]);
/* -ENODATA when the head is empty, -EBADMSG when it cannot be read as one. */
int cordon_chain_head_read(int head_fd, struct cordon_chain_head *ret_head);
int cordon_chain_head_write(int head_fd, const struct cordon_chain_head *head);

#endif
