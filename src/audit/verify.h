/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether the audit log is complete: every line follows from the one before it, and the last line is the one
 * that was written last. */
#ifndef CORDON_AUDIT_VERIFY_H
#define CORDON_AUDIT_VERIFY_H

#include "audit/chain.h"

struct cordon_audit_finding {
	char file[CORDON_CHAIN_NAME_SIZE];
	uint64_t line;	  /* from 1; 0 when it is not about a line */
	char reason[256]; /* one sentence without the place */
};

struct cordon_audit_report {
	uint64_t files;
	uint64_t records;
	uint64_t first_seq; /* of the first record that was checked; 0: there is none */
	uint64_t last_seq;
	bool whole;   /* everything from the beginning of the log to its end was checked */
	bool stopped; /* the time was over before the end; nothing is known about what follows last_seq */
	/* A user who wants proof against the owner of the log stores it elsewhere. */
	char last_hash[CORDON_AUDIT_HASH_SIZE];
	char seq_hash[CORDON_AUDIT_HASH_SIZE]; /* of the record that the caller asked for; "" when it is not there */
	uint64_t breaks;
	struct cordon_audit_finding first_break;
	/* Lines that a dead writer left unfinished; they are no break, because no written record is lost. */
	uint64_t torn;
	struct cordon_audit_finding first_torn;
};

/* What to check; zero means all. */
struct cordon_audit_part {
	bool calls;	  /* the log of clients' calls, and not that of everything else */
	size_t files;	  /* the newest of them */
	int64_t deadline; /* of cordon_time_monotonic() */
	uint64_t seq;	  /* of a record whose hash is wanted, or 0 */
};

/* Returns 0 with a report, also about a broken log or no log at all; -errno when it cannot be read. */
int cordon_audit_verify(const struct cordon_home *home, const struct cordon_audit_part *part,
			struct cordon_audit_report *ret_report, struct cordon_error *err);

#endif
