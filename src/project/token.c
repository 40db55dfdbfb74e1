/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the HTTP server: makes, lists, finds and revokes them. */
#include <sodium.h>
#include <stdio.h>

#include "approval/approval.h"
#include "base/lock.h"
#include "project/token.h"
#include "state/kinds.h"
#include "state/record.h"

#define ID_BYTES 4
#define HASH_BYTES crypto_hash_sha256_BYTES
#define SUFFIX ".json"

static const char *const scope_names[] = { "read", "run", "admin", NULL };

#define TOKEN(key_, type_, member_)                                                                                    \
	.key = (key_), .type = CORDON_FIELD_##type_, .offset = offsetof(struct cordon_token_record, member_),          \
	.size = sizeof(((struct cordon_token_record *)0)->member_)

static const struct cordon_field fields[] = {
	{ TOKEN("id", TEXT, id), .needed = true },
	{ TOKEN("name", STRING, name) },
	{ TOKEN("scope", NAME, scope), .names = scope_names, .needed = true },
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the member is a pointer. */
	{ TOKEN("projects", STRINGS, projects), .needed = true },
	{ TOKEN("created_at", TEXT, created_at) },
	{ TOKEN("expires_at", TEXT, expires_at) },
	{ TOKEN("hash", TEXT, hash), .needed = true, .hidden = true },
	{ 0 },
};

static const struct cordon_record_kind kind = {
	.what = "token",
	.size = sizeof(struct cordon_token_record),
	.other = offsetof(struct cordon_token_record, other),
	.id = offsetof(struct cordon_token_record, id),
	.created_at = offsetof(struct cordon_token_record, created_at),
	.fields = fields,
};

const char *cordon_token_scope_name(cordon_token_scope scope)
{
	return scope_names[scope];
}

int cordon_token_scope_parse(const char *text, cordon_token_scope *ret_scope, char **ret_project,
			     struct cordon_error *err)
{
	static const char project[] = "project:", read_only[] = ":ro";
	size_t n = strlen(text);
	bool ro = n > sizeof(read_only) - 1 && cordon_streq(text + n - (sizeof(read_only) - 1), read_only);

	*ret_project = NULL;
	for (size_t i = 0; i < CORDON_SCOPE__MAX; i++) {
		if (!cordon_streq(text, scope_names[i]))
			continue;
		*ret_scope = (cordon_token_scope)i;
		return 0;
	}
	*ret_scope = ro ? CORDON_SCOPE_READ : CORDON_SCOPE_RUN;
	if (cordon_streq(text, "admin:ro"))
		return 0;
	if (ro)
		n -= sizeof(read_only) - 1;
	if (n > sizeof(project) - 1 && strncmp(text, project, sizeof(project) - 1) == 0) {
		*ret_project = strndup(text + sizeof(project) - 1, n - (sizeof(project) - 1));
		return *ret_project ? 0 : cordon_no_memory(err);
	}
	return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "a scope is read, run or admin, not %s", text);
}

static void hash_token(const char *token, char ret_hash[static 2 * HASH_BYTES + 1])
{
	unsigned char hash[HASH_BYTES];

	crypto_hash_sha256(hash, (const unsigned char *)token, strlen(token));
	sodium_bin2hex(ret_hash, 2 * HASH_BYTES + 1, hash, sizeof(hash));
}

static int open_dir(const struct cordon_store *store, int *ret_fd, struct cordon_error *err)
{
	return cordon_state_kind_open(&store->home, CORDON_STATE_KIND_TOKENS, ret_fd, err);
}

static int judge_name(const char *name, const struct cordon_tokens *tokens, struct cordon_error *err)
{
	int r = name ? cordon_text_judge("name", name, CORDON_NAME_MAX, err) : 0;

	for (size_t i = 0; r == 0 && name && i < tokens->n; i++)
		if (cordon_streq(name, tokens->items[i].id) ||
		    (tokens->items[i].name && cordon_streq(name, tokens->items[i].name)))
			r = cordon_fail(err, -EEXIST, CORDON_KIND_CONFLICT, "there is a token %s already", name);
	return r;
}

int cordon_token_create(const struct cordon_store *store, const struct cordon_token_request *wanted,
			struct cordon_token_record *ret_record, char ret_token[static CORDON_TOKEN_SIZE],
			struct cordon_error *err)
{
	autotokens struct cordon_tokens present = { 0 };
	autotokenrecord struct cordon_token_record record = { 0 };
	unsigned char secret[32], id[ID_BYTES];
	char file[CORDON_ID_SIZE + sizeof(SUFFIX)];
	autofd int dir = -1;
	autofd int lock = -1;
	int r = sodium_init() < 0 ? cordon_fail(err, -EIO, CORDON_KIND_INTERNAL, "libsodium can't be used")
				  : open_dir(store, &dir, err);

	if (r == 0)
		r = cordon_lock_take(dir, "lock", LOCK_EX, &lock, err);
	if (r == 0)
		r = cordon_tokens_load(store, &present, err);
	if (r == 0)
		r = judge_name(wanted->name, &present, err);
	if (r == 0 && present.n >= CORDON_TOKENS_MAX) {
		r = cordon_fail(err, -ENOSPC, CORDON_KIND_LIMIT, "there are %d tokens already", CORDON_TOKENS_MAX);
		cordon_error_hint(err, "revoke some with 'cordon token revoke'");
	}
	if (r < 0)
		return r;
	randombytes_buf(secret, sizeof(secret));
	randombytes_buf(id, sizeof(id));
	cordon_concat(ret_token, CORDON_TOKEN_SIZE, CORDON_TOKEN_PREFIX, (char *)NULL);
	sodium_bin2base64(ret_token + sizeof(CORDON_TOKEN_PREFIX) - 1,
			  CORDON_TOKEN_SIZE - sizeof(CORDON_TOKEN_PREFIX) + 1, secret, sizeof(secret),
			  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	sodium_memzero(secret, sizeof(secret));
	sodium_bin2hex(record.id, sizeof(record.id), id, sizeof(id));
	hash_token(ret_token, record.hash);
	record.scope = wanted->scope;
	record.name = wanted->name ? strdup(wanted->name) : NULL;
	record.projects = wanted->projects ? json_deep_copy(wanted->projects) : json_array();
	cordon_record_stamp(record.created_at);
	if (wanted->expiry_ms)
		cordon_time_format(cordon_time_now() + (int64_t)wanted->expiry_ms, record.expires_at);
	if (!record.projects || (wanted->name && !record.name))
		return cordon_no_memory(err);
	snprintf(file, sizeof(file), "%s" SUFFIX, record.id);
	r = cordon_record_save(&kind, dir, file, &record, err);
	if (r < 0)
		return r;
	*ret_record = record;
	record = (struct cordon_token_record){ 0 };
	return 0;
}

void cordon_token_record_done(struct cordon_token_record *record)
{
	cordon_fields_done(&kind, record);
}

json_t *cordon_token_json(const struct cordon_token_record *record)
{
	return cordon_fields_write(&kind, record, true);
}

void cordon_tokens_done(struct cordon_tokens *tokens)
{
	for (size_t i = 0; i < tokens->n; i++)
		cordon_token_record_done(&tokens->items[i]);
	free(tokens->items);
	*tokens = (struct cordon_tokens){ 0 };
}

static int compare(const void *a, const void *b)
{
	const struct cordon_token_record *x = a, *y = b;
	int r = strcmp(x->created_at, y->created_at);

	return r ? r : strcmp(x->id, y->id);
}

int cordon_tokens_load(const struct cordon_store *store, struct cordon_tokens *ret_tokens, struct cordon_error *err)
{
	autotokens struct cordon_tokens tokens = { 0 };
	json_auto_t *names = NULL;
	autofd int dir = -1;
	size_t i;
	json_t *name;
	int r = open_dir(store, &dir, err);

	if (r == 0)
		r = cordon_record_names(dir, SUFFIX, &names, err);
	if (r < 0)
		return r;
	tokens.items = calloc(json_array_size(names) + 1, sizeof(*tokens.items));
	if (!tokens.items)
		return cordon_no_memory(err);
	json_array_foreach(names, i, name) {
		char file[NAME_MAX + 1];

		snprintf(file, sizeof(file), "%.*s" SUFFIX, (int)(sizeof(file) - sizeof(SUFFIX)),
			 json_string_value(name));
		r = cordon_record_load(&kind, dir, file, &tokens.items[tokens.n], err);
		if (r == 0)
			tokens.n++;
		else if (r != -ENOENT) /* one that is revoked meanwhile is no part of the list */
			return cordon_error_prefix(err, r, "token %s", json_string_value(name));
	}
	qsort(tokens.items, tokens.n, sizeof(*tokens.items), compare);
	*ret_tokens = tokens;
	tokens = (struct cordon_tokens){ 0 };
	return 0;
}

bool cordon_token_expired(const struct cordon_token_record *record, int64_t now)
{
	int64_t expiry;

	/* A time that can't be read has passed. */
	return *record->expires_at && (cordon_time_parse(record->expires_at, &expiry) < 0 || expiry <= now);
}

const struct cordon_token_record *cordon_tokens_find(const struct cordon_tokens *tokens, const char *token, int64_t now)
{
	const struct cordon_token_record *found = NULL;
	char hash[2 * HASH_BYTES + 1];

	hash_token(token, hash);
	for (size_t i = 0; i < tokens->n; i++)
		if (strlen(tokens->items[i].hash) == crypto_verify_64_BYTES &&
		    crypto_verify_64((const unsigned char *)tokens->items[i].hash, (const unsigned char *)hash) == 0)
			found = &tokens->items[i];
	return found && !cordon_token_expired(found, now) ? found : NULL;
}

int cordon_token_revoke(const struct cordon_store *store, const char *text, char ret_id[static CORDON_ID_SIZE],
			struct cordon_error *err)
{
	autotokens struct cordon_tokens tokens = { 0 };
	const struct cordon_token_record *found = NULL;
	char file[CORDON_ID_SIZE + sizeof(SUFFIX)], principal[CORDON_ID_SIZE + sizeof(CORDON_TOKEN_PRINCIPAL)];
	autofd int dir = -1;
	int r = open_dir(store, &dir, err);

	if (r == 0)
		r = cordon_tokens_load(store, &tokens, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < tokens.n; i++)
		if (cordon_streq(text, tokens.items[i].id) ||
		    (tokens.items[i].name && cordon_streq(text, tokens.items[i].name)))
			found = &tokens.items[i];
	if (!found) {
		r = cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "there is no token %s", text);
		cordon_error_hint(err, "see 'cordon token list'");
		return r;
	}
	snprintf(file, sizeof(file), "%s" SUFFIX, found->id);
	if (unlinkat(dir, file, 0) < 0 && errno != ENOENT)
		return cordon_fail_errno(err, -errno, "cannot revoke the token %s", text);
	if (fsync(dir) < 0)
		return cordon_fail_errno(err, -errno, "cannot revoke the token %s", text);
	snprintf(principal, sizeof(principal), CORDON_TOKEN_PRINCIPAL "%s", found->id);
	r = cordon_approvals_withdraw(store, principal, err);
	if (r < 0)
		return cordon_error_prefix(err, r, "the token is revoked, but what it asked for still waits");
	cordon_copy(ret_id, CORDON_ID_SIZE, found->id, strlen(found->id));
	return 0;
}
