/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may see the page: the user who runs the server. `cordon open` asks over the control socket for a link, which
 * works once and for a minute; the link sets a cookie for twelve hours.
 *
 * A cookie is "<expiry>.<nonce>.<mac>". The code covers both and the place (address and port, or the name of a front),
 * so it is of no use anywhere else, although browsers send it to other ports, and a restart does not end a login. Every
 * form has a second code over the nonce.
 */
#include <sodium.h>
#include <stdio.h>

#include "base/time.h"
#include "serve/internal.h"

#define LINK_MS 60000
#define COOKIE_MS ((int64_t)12 * 3600 * 1000)
#define CODE_BYTES 32
/* What the code of a cookie is for: a browser that is in no sandbox, or of one that has a sandbox of its own, or comes
 * from elsewhere. */
#define OUTSIDE "cookie outside"
#define ANYWHERE "cookie"

_Static_assert(CORDON_PAGE_TOKEN_SIZE == 2 * crypto_auth_BYTES + 1, "a token is the code in hexadecimal");

static void make_code(const struct cordon_server *server, const char *what, const char *place, const char *expiry,
		      const char *nonce, char ret_hex[static CORDON_PAGE_TOKEN_SIZE])
{
	unsigned char mac[crypto_auth_BYTES];
	char about[160 + CORDON_SERVE_HOST_SIZE];
	int n = snprintf(about, sizeof(about), "%s\n%.*s\n%s\n%s", what, CORDON_SERVE_HOST_SIZE, place, expiry, nonce);

	crypto_auth(mac, (const unsigned char *)about, (unsigned long long)n, server->key);
	sodium_bin2hex(ret_hex, CORDON_PAGE_TOKEN_SIZE, mac, sizeof(mac));
}

static bool same(const char *a, const char *b)
{
	return strlen(a) == strlen(b) && sodium_memcmp(a, b, strlen(b)) == 0;
}

int cordon_login_link(struct cordon_server *server, const char *place, char *ret_url, size_t size)
{
	struct cordon_login *oldest = &server->logins[0];
	unsigned char bytes[CODE_BYTES];
	char code[2 * CODE_BYTES + 1];
	int n;

	for (size_t i = 1; i < CORDON_LOGINS_MAX; i++)
		if (server->logins[i].expiry < oldest->expiry)
			oldest = &server->logins[i];
	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(code, sizeof(code), bytes, sizeof(bytes));
	/* The server keeps only a hash: what it remembers opens nothing. */
	crypto_generichash(oldest->hash, sizeof(oldest->hash), (const unsigned char *)code, strlen(code), NULL, 0);
	oldest->expiry = cordon_time_monotonic() + LINK_MS;
	n = snprintf(ret_url, size, "%s/login?code=%s", place, code);
	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* A link is used up by the first attempt with it. */
static bool use_code(struct cordon_server *server, const char *code)
{
	unsigned char hash[CORDON_LOGIN_HASH_SIZE];
	int64_t now = cordon_time_monotonic();
	bool found = false;

	crypto_generichash(hash, sizeof(hash), (const unsigned char *)code, strlen(code), NULL, 0);
	for (size_t i = 0; i < CORDON_LOGINS_MAX; i++) {
		if (server->logins[i].expiry <= now || sodium_memcmp(server->logins[i].hash, hash, sizeof(hash)) != 0)
			continue;
		server->logins[i] = (struct cordon_login){ 0 };
		found = true;
	}
	return found;
}

int cordon_login_use(struct cordon_server *server, const struct cordon_listener *listener, const char *front,
		     const char *code, uint32_t inode, char *ret_cookie, size_t size)
{
	pid_t browser = server->browser;
	char nonce[CORDON_SESSION_NONCE_SIZE], expiry[24], mac[CORDON_PAGE_TOKEN_SIZE];
	unsigned char bytes[16];
	int n;

	if (!code || strlen(code) != 2 * (size_t)CODE_BYTES || !use_code(server, code))
		return -EPERM;
	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(nonce, sizeof(nonce), bytes, sizeof(bytes));
	snprintf(expiry, sizeof(expiry), "%lld", (long long)(cordon_time_now() + COOKIE_MS));
	make_code(server, inode && cordon_peer_outside(inode, &browser) ? OUTSIDE : ANYWHERE,
		  front ? front : listener->hosts[0], expiry, nonce, mac);
	n = snprintf(ret_cookie, size, "cordon-%u=%s.%s.%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Strict%s",
		     listener->port, expiry, nonce, mac, (long long)(COOKIE_MS / 1000), front ? "; Secure" : "");
	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* The value of the next cookie with this name in "a=1; b=2", or NULL. */
static const char *next_cookie(const char *header, unsigned int port)
{
	char name[24];
	size_t n = (size_t)snprintf(name, sizeof(name), "cordon-%u=", port);

	while (header && strncmp(header, name, n) != 0) {
		header = strchr(header, ';');
		if (header)
			header += 1 + strspn(header + 1, " ");
	}
	return header ? header + n : NULL;
}

/* Splits the value of a cookie at its dots. */
static int split_cookie(const char *value, char *ret_text, size_t size, const char *ret_parts[static 3])
{
	char *dot;

	if (cordon_copy(ret_text, size, value, strcspn(value, "; ,")) < 0)
		return -ENAMETOOLONG;
	ret_parts[0] = ret_text;
	for (size_t i = 1; i < 3; i++) {
		dot = strchr(ret_parts[i - 1], '.');
		if (!dot)
			return -EINVAL;
		*dot = '\0';
		ret_parts[i] = dot + 1;
	}
	return 0;
}

static int check_cookie(const struct cordon_server *server, const char *place, const char *value,
			struct cordon_page_login *ret_login)
{
	char text[256], want[CORDON_PAGE_TOKEN_SIZE];
	const char *parts[3];
	uint64_t expiry;
	bool outside;

	if (split_cookie(value, text, sizeof(text), parts) < 0 || strlen(parts[1]) != CORDON_SESSION_NONCE_SIZE - 1 ||
	    strlen(parts[0]) > 20)
		return -EPERM;
	make_code(server, OUTSIDE, place, parts[0], parts[1], want);
	outside = same(parts[2], want);
	make_code(server, ANYWHERE, place, parts[0], parts[1], want);
	if ((!outside && !same(parts[2], want)) || cordon_parse_u64(parts[0], 0, INT64_MAX, &expiry) < 0 ||
	    (int64_t)expiry <= cordon_time_now() || cordon_ended_has(server, CORDON_ENDED_LOGINS, parts[1]))
		return -EPERM;
	memcpy(ret_login->nonce, parts[1], CORDON_SESSION_NONCE_SIZE);
	ret_login->expiry = (int64_t)expiry;
	ret_login->outside = outside;
	make_code(server, "form", place, parts[0], parts[1], ret_login->token);
	return 0;
}

/* Another server at the same host may have set cookies with our name, and a browser sends those with a longer path
 * first. */
int cordon_login_check(const struct cordon_server *server, const struct cordon_listener *listener, const char *front,
		       const char *header, struct cordon_page_login *ret_login)
{
	const char *value = header;

	while ((value = next_cookie(value, listener->port)))
		if (check_cookie(server, front ? front : listener->hosts[0], value, ret_login) == 0)
			return 0;
	return -EPERM;
}
