/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of the legacy era. An id is "<payload>.<mac>": the payload has version, capabilities, client and expiry, and the
 * code covers it and the principal. So no restart makes an id invalid, and none is of use to another client. What was ended is
 * remembered (ended.c) until it would have expired.
 */
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/home.h"
#include "base/io.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/time.h"
#include "serve/internal.h"

#define KEY "key"
#define KEPT_MS 600000 /* subscriptions of a client that has no stream */
#define VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING

int cordon_serve_key(const struct cordon_store *store, unsigned char ret_key[static CORDON_SERVE_KEY_SIZE],
		     struct cordon_error *err)
{
	autobuf struct cordon_buf text = CORDON_BUF(CORDON_SERVE_KEY_SIZE);
	autofd int dir = -1;
	int r = cordon_home_subdir(&store->home, "serve", &dir, err);

	if (r < 0)
		return r;
	/* Two servers that start at once have the same key: the second waits here until the first has written it. */
	r = cordon_lock(dir, LOCK_EX);
	if (r < 0)
		return cordon_fail_errno(err, r, "cannot lock state/serve");
	r = cordon_read_file(dir, KEY, O_NOFOLLOW, &text, err);
	if (r == -ENOENT) {
		unsigned char key[CORDON_SERVE_KEY_SIZE];

		randombytes_buf(key, sizeof(key));
		r = cordon_write_file(dir, KEY, 0600, key, sizeof(key), err);
		sodium_memzero(key, sizeof(key));
		if (r == 0)
			r = cordon_read_file(dir, KEY, O_NOFOLLOW, &text, err);
	}
	if (r < 0)
		return r;
	if (text.len != CORDON_SERVE_KEY_SIZE) {
		cordon_fail(err, -EBADMSG, CORDON_KIND_IO, "state/serve/" KEY " is damaged");
		cordon_error_hint(err, "remove it; clients of the older protocol then have to connect again");
		return -EBADMSG;
	}
	memcpy(ret_key, text.data, CORDON_SERVE_KEY_SIZE);
	sodium_memzero(text.data, text.len);
	return 0;
}

static void make_mac(const struct cordon_server *server, const char *payload, const char *principal,
		     unsigned char ret_mac[static crypto_auth_BYTES])
{
	autobuf struct cordon_buf about = CORDON_BUF(2 * CORDON_SESSION_TEXT_MAX);

	/* The payload is of base64url, so the line feed can't be a part of it. */
	cordon_buf_addf(&about, "session\n%s\n%s", payload, principal);
	crypto_auth(ret_mac, (const unsigned char *)about.data, about.len, server->key);
}

/* Only what a server can ask for later, and without details: a client may send any number of them. */
static json_t *kept_capabilities(const json_t *all)
{
	const json_t *elicitation = json_object_get(all, "elicitation");
	json_t *kept = json_object();

	if (json_object_get(all, "sampling"))
		json_object_set_new(kept, "sampling", json_object());
	if (json_is_object(elicitation)) {
		json_t *forms = json_object();

		if (json_object_get(elicitation, "form"))
			json_object_set_new(forms, "form", json_object());
		if (json_object_get(elicitation, "url"))
			json_object_set_new(forms, "url", json_object());
		json_object_set_new(kept, "elicitation", forms);
	}
	return kept;
}

int cordon_session_id_make(struct cordon_server *server, const struct cordon_mcp_channel *channel,
			   struct cordon_buf *ret_text)
{
	const char *name = cordon_json_string(channel->client, "name");
	char shown[65] = "", nonce[CORDON_SESSION_NONCE_SIZE], encoded[2 * crypto_auth_BYTES];
	unsigned char bytes[16], mac[crypto_auth_BYTES];
	autofree char *json = NULL;
	autofree char *payload = NULL;
	json_auto_t *value = NULL;
	size_t size;

	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(nonce, sizeof(nonce), bytes, sizeof(bytes));
	if (name)
		cordon_text_escape_fixed(shown, sizeof(shown), name, strnlen(name, 256));
	value = json_pack("{s:s, s:o, s:I, s:s, s:s}", "v", channel->version, "c",
			  kept_capabilities(channel->capabilities), "e",
			  (json_int_t)cordon_time_now() + CORDON_SESSION_LIFE_MS, "n", nonce, "i", shown);
	json = value ? json_dumps(value, JSON_COMPACT) : NULL;
	if (!json)
		return -ENOMEM;
	size = sodium_base64_encoded_len(strlen(json), VARIANT);
	payload = malloc(size);
	if (!payload)
		return -ENOMEM;
	sodium_bin2base64(payload, size, (const unsigned char *)json, strlen(json), VARIANT);
	make_mac(server, payload, channel->principal, mac);
	sodium_bin2base64(encoded, sizeof(encoded), mac, sizeof(mac), VARIANT);
	return cordon_buf_addf(ret_text, "%s.%s", payload, encoded);
}

/* Returns the payload of an id that we made for this principal, a new reference, or NULL. */
static json_t *open_id(const struct cordon_server *server, const char *text, const char *principal)
{
	const char *dot = strchr(text, '.');
	unsigned char mac[crypto_auth_BYTES], given[crypto_auth_BYTES], json[CORDON_SESSION_TEXT_MAX];
	autofree char *payload = NULL;
	size_t n;

	if (!dot || strlen(text) > CORDON_SESSION_TEXT_MAX)
		return NULL;
	payload = strndup(text, (size_t)(dot - text));
	if (!payload || sodium_base642bin(given, sizeof(given), dot + 1, strlen(dot + 1), NULL, &n, NULL, VARIANT) < 0 ||
	    n != sizeof(given))
		return NULL;
	make_mac(server, payload, principal, mac);
	if (sodium_memcmp(mac, given, sizeof(mac)) != 0 ||
	    sodium_base642bin(json, sizeof(json), payload, strlen(payload), NULL, &n, NULL, VARIANT) < 0)
		return NULL;
	return json_loadb((const char *)json, n, 0, NULL);
}

/* What goes to a session rather than to one of its requests is sent on its stream, if it has one. */
static void send_to_stream(struct cordon_mcp_channel *channel, const json_t *message)
{
	struct cordon_http_session *session = channel->data;

	if (session->stream)
		session->stream->channel.send(&session->stream->channel, message);
}

static struct cordon_http_session *get(struct cordon_server *server, struct cordon_client *client, const char *nonce,
				       int64_t expiry)
{
	struct cordon_http_session *session = server->sessions;

	while (session && !cordon_streq(session->nonce, nonce))
		session = session->next;
	if (!session) {
		session = calloc(1, sizeof(*session));
		if (!session)
			return NULL;
		cordon_copy(session->nonce, sizeof(session->nonce), nonce, strlen(nonce));
		session->server = server;
		session->client = client;
		client->users++;
		session->expiry = expiry;
		session->channel = (struct cordon_mcp_channel){
			.send = send_to_stream,
			.data = session,
			.principal = client->name,
			.initialized = true,
			.grant = *client->token_id ? &client->grant : NULL,
		};
		session->next = server->sessions;
		server->sessions = session;
	}
	session->users++;
	return session;
}

int cordon_http_session_find(struct cordon_server *server, struct cordon_client *client, const char *text,
			     struct cordon_mcp_channel *channel, struct cordon_http_session **ret_session)
{
	json_auto_t *value = open_id(server, text, client->name);
	const char *nonce = cordon_json_string(value, "n");
	const char *version = cordon_json_string(value, "v");
	int64_t expiry = cordon_json_integer(value, "e");
	struct cordon_http_session *session;

	if (!nonce || !version || expiry <= cordon_time_now() || cordon_ended_has(server, CORDON_ENDED_SESSIONS, nonce))
		return -ENOENT;
	session = get(server, client, nonce, expiry);
	if (!session)
		return -ENOMEM;
	channel->initialized = true;
	channel->session = &session->channel;
	cordon_copy(channel->version, sizeof(channel->version), version, strlen(version));
	channel->capabilities = json_incref(json_object_get(value, "c"));
	channel->client = json_pack("{s:O}", "name", json_object_get(value, "i"));
	*ret_session = session;
	return 0;
}

static void free_session(struct cordon_http_session *session)
{
	struct cordon_http_session **link = &session->server->sessions;

	while (*link != session)
		link = &(*link)->next;
	*link = session->next;
	if (session->kept)
		session->client->kept--;
	cordon_mcp_close_channel(session->server->mcp, &session->channel, false);
	cordon_client_drop(session->server, session->client);
	free(session);
}

bool cordon_http_session_may_subscribe(const struct cordon_http_session *session)
{
	return session->kept || session->client->kept < CORDON_SERVE_STREAMS_MAX;
}

void cordon_http_session_subscribed(struct cordon_http_session *session)
{
	bool kept = cordon_mcp_listens(session->server->mcp, &session->channel);

	if (kept == session->kept)
		return;
	session->kept = kept;
	if (kept)
		session->client->kept++;
	else
		session->client->kept--;
}

static bool is_kept(const struct cordon_http_session *session, int64_t now)
{
	if (session->users || session->stream)
		return true;
	return cordon_mcp_listens(session->server->mcp, &session->channel) && !session->client->revoked &&
	       now - session->left < KEPT_MS &&
	       !cordon_ended_has(session->server, CORDON_ENDED_SESSIONS, session->nonce);
}

void cordon_http_session_drop(struct cordon_http_session *session)
{
	int64_t now = cordon_time_monotonic();

	if (!session)
		return;
	session->users--;
	session->left = now;
	if (!is_kept(session, now))
		free_session(session);
}

void cordon_http_sessions_sweep(struct cordon_server *server, int64_t now)
{
	struct cordon_http_session *next;

	for (struct cordon_http_session *session = server->sessions; session; session = next) {
		next = session->next;
		if (!is_kept(session, now))
			free_session(session);
	}
}

void cordon_http_sessions_free(struct cordon_server *server)
{
	while (server->sessions)
		free_session(server->sessions);
	cordon_ended_free(server);
	server->key = cordon_secret_free(server->key, CORDON_SERVE_KEY_SIZE);
}

int cordon_http_sessions_load(struct cordon_server *server, struct cordon_error *err)
{
	int r = cordon_home_subdir(&server->store->home, "serve", &server->serve_fd, err);

	if (r == 0)
		server->key = cordon_secret_new(CORDON_SERVE_KEY_SIZE);
	if (r == 0)
		r = server->key ? cordon_serve_key(server->store, server->key, err)
				: cordon_fail_errno(err, -errno, "no memory for a key");
	return r < 0 ? r : cordon_ended_load(server, err);
}

int cordon_http_session_end(struct cordon_http_session *session, struct cordon_error *err)
{
	return cordon_ended_add(session->server, CORDON_ENDED_SESSIONS, session->nonce, session->expiry, err);
}
