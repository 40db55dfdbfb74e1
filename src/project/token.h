/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of the HTTP server: state/tokens/<id>.json, one file (0600) each. A token is 256 random bits; the record has only
 * its hash, so that nobody can read a token from the disk. Removing the file revokes the token.
 */
#ifndef CORDON_PROJECT_TOKEN_H
#define CORDON_PROJECT_TOKEN_H

#include "store/store.h"

/* Each includes those before it. */
typedef enum cordon_token_scope {
	CORDON_SCOPE_READ,  /* sees */
	CORDON_SCOPE_RUN,   /* also starts and stops what runs */
	CORDON_SCOPE_ADMIN, /* also changes settings and grants, and deletes */
	CORDON_SCOPE__MAX
} cordon_token_scope;

#define CORDON_TOKEN_PREFIX "cordon_"
#define CORDON_TOKEN_SIZE (sizeof(CORDON_TOKEN_PREFIX) + 43) /* 256 bits in base64url, and a NUL */
#define CORDON_TOKENS_MAX 1000
#define CORDON_TOKENS_DIR "tokens" /* below state/ */

struct cordon_token_record {
	char id[CORDON_ID_SIZE];
	char created_at[CORDON_TIME_SIZE];
	char expires_at[CORDON_TIME_SIZE]; /* "": never */
	char *name;
	cordon_token_scope scope;
	json_t *projects; /* ids; empty: all */
	char hash[65];	  /* SHA-256 of the token, in hexadecimal digits */
	json_t *other;
};

struct cordon_token_request {
	const char *name; /* may be NULL */
	cordon_token_scope scope;
	json_t *projects;   /* ids, borrowed */
	uint64_t expiry_ms; /* from now on; 0: never */
};

const char *cordon_token_scope_name(cordon_token_scope scope);
/* Reads a scope: read, run, admin, or an older word (admin:ro, project:ID, project:ID:ro). *ret_project is the ID of such a
 * word as it was written, to be freed, or NULL. -EINVAL with kind usage. */
int cordon_token_scope_parse(const char *text, cordon_token_scope *ret_scope, char **ret_project,
			     struct cordon_error *err);

int cordon_token_create(const struct cordon_store *store, const struct cordon_token_request *wanted,
			struct cordon_token_record *ret_record, char ret_token[static CORDON_TOKEN_SIZE],
			struct cordon_error *err);
void cordon_token_record_done(struct cordon_token_record *record);
#define autotokenrecord CORDON_CLEANUP(cordon_token_record_done)
/* What people see of it: all but the hash. A new reference. */
json_t *cordon_token_json(const struct cordon_token_record *record);

/* All tokens, oldest first; of those that expired too. Free them with cordon_tokens_free(). */
struct cordon_tokens {
	struct cordon_token_record *items;
	size_t n;
};
int cordon_tokens_load(const struct cordon_store *store, struct cordon_tokens *ret_tokens, struct cordon_error *err);
void cordon_tokens_done(struct cordon_tokens *tokens);
#define autotokens CORDON_CLEANUP(cordon_tokens_done)
/* Finds the record of a token that has not expired, or NULL. Takes the same time whichever token it is. */
const struct cordon_token_record *cordon_tokens_find(const struct cordon_tokens *tokens, const char *token, int64_t now);
bool cordon_token_expired(const struct cordon_token_record *record, int64_t now);

#define CORDON_TOKEN_PRINCIPAL "token:" /* and the id: who makes the calls of a token (approval/approval.h) */

/* Removes a token by its id or its name, which must be unique. What its calls have asked a person expires. */
int cordon_token_revoke(const struct cordon_store *store, const char *text, char ret_id[static CORDON_ID_SIZE],
			struct cordon_error *err);

#endif
