/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the audit log is whole: every line follows from the one before it, and the last is the one last written. */
#ifndef CORDON_AUDIT_VERIFY_H
#define CORDON_AUDIT_VERIFY_H

#include "audit/chain.h"

struct cordon_audit_finding {
	char file[CORDON_CHAIN_NAME_SIZE];
	uint64_t line;	  /* from 1; 0 when it concerns no line */
	char reason[256]; /* one sentence without the place */
};

struct cordon_audit_report {
	uint64_t files;
	uint64_t records;
	uint64_t last_seq;
	char last_hash[CORDON_AUDIT_HASH_SIZE]; /* to be kept elsewhere by whoever wants proof against the log's owner */
	uint64_t breaks;
	struct cordon_audit_finding first_break;
	uint64_t torn; /* lines that a dead writer left unfinished; no break, as no written record is lost */
	struct cordon_audit_finding first_torn;
};

/* 0 with a report, also about a broken log or none at all; -errno when it cannot be read. */
int cordon_audit_verify(const struct cordon_home *home, struct cordon_audit_report *ret_report,
			struct cordon_error *err);

#endif
