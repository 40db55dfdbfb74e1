/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints on the run's loopback that add a credential. The run speaks plain HTTP to one; the helper replaces the
 * header that holds the credential and the Host header in each request, and speaks TLS with the host, whose certificate
 * it verifies with the system's. Answers pass as they come. The run never holds the credential.
 */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#include "net/conn.h"

#define OUT_SIZE (2 * CORDON_HTTP_HEAD_MAX)
#define BACK_SIZE 16384
#define TURN_STEPS 64

/* Certificates of authorities, where distributions have them. */
static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
				       "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem" };
static SSL_CTX *context;
static struct name *names; /* one for each credential */

struct inject {
	const struct credential *credential;
	SSL *ssl;
	struct cordon_http http;
	char *out; /* for the host */
	size_t out_len, out_at;
	char *back; /* for the run */
	size_t back_len, back_at;
	bool ready;  /* TLS has begun */
	bool opaque; /* a WebSocket has begun, or the run has ended its side */
	bool over;   /* the host has sent its last byte */
};

enum step { PROGRESS, WAITS, BROKEN };

int net_inject_begin(const char **ret_what)
{
	size_t i = 0;

	if (!net.n_credentials)
		return 0;
	*ret_what = "read the certificates of this machine";
	names = calloc(net.n_credentials, sizeof(*names));
	if (!names || !OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS, NULL))
		return -ENOMEM;
	context = SSL_CTX_new(TLS_client_method());
	if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION))
		return -ENOMEM;
	while (i < CORDON_ARRAY_SIZE(bundles) && !SSL_CTX_load_verify_file(context, bundles[i]))
		i++;
	if (i == CORDON_ARRAY_SIZE(bundles))
		return -ENOENT;
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	for (size_t k = 0; k < net.n_credentials; k++)
		if (cordon_net_name_clean(net.credentials[k].host, strlen(net.credentials[k].host), names[k].text) < 0)
			return -EINVAL;
	return 0;
}

struct name *net_inject_name(int number)
{
	return &names[number];
}

void net_inject_done(struct conn *conn)
{
	struct inject *inject = conn->inject;

	if (!inject)
		return;
	SSL_free(inject->ssl);
	net.buffered -= OUT_SIZE + BACK_SIZE;
	free(inject->out);
	free(inject->back);
	free(inject);
	conn->inject = NULL;
}

/* Answers the run itself, where the host can't. */
static void answer_failure(struct conn *conn, const char *why)
{
	char text[512], answer[1024];
	int n = snprintf(text, sizeof(text), "cordon: %s: %s\n", conn->name->text, why);

	n = snprintf(answer, sizeof(answer),
		     "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		     n < (int)sizeof(text) ? n : (int)sizeof(text) - 1, text);
	(void)send(conn->in.fd, answer, (size_t)n < sizeof(answer) ? (size_t)n : sizeof(answer) - 1,
		   MSG_DONTWAIT | MSG_NOSIGNAL);
}

void net_inject_unreachable(struct conn *conn)
{
	answer_failure(conn, "the host can't be reached");
}

void net_inject_start(struct conn *conn)
{
	static const unsigned char protocols[] = "\x08http/1.1";
	bool held = net_conn_hold(OUT_SIZE + BACK_SIZE);
	struct inject *inject = held ? calloc(1, sizeof(*inject)) : NULL;

	if (held && !inject)
		net.buffered -= OUT_SIZE + BACK_SIZE;
	conn->inject = inject;
	if (inject) {
		inject->credential = &net.credentials[conn->credential];
		inject->ssl = SSL_new(context);
		inject->out = malloc(OUT_SIZE);
		inject->back = malloc(BACK_SIZE);
	}
	if (!inject || !inject->ssl || !inject->out || !inject->back ||
	    !SSL_set_tlsext_host_name(inject->ssl, conn->name->text) || !SSL_set1_host(inject->ssl, conn->name->text) ||
	    SSL_set_alpn_protos(inject->ssl, protocols, sizeof(protocols) - 1) ||
	    !SSL_set_fd(inject->ssl, conn->out.fd)) {
		net_conn_end(conn, true);
		return;
	}
	SSL_set_connect_state(inject->ssl);
	net_relay_begin(conn);
}

/* What a call of OpenSSL that did not succeed means. */
static enum step after_ssl(const struct inject *inject, int r)
{
	int error = SSL_get_error(inject->ssl, r);

	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? WAITS : BROKEN;
}

static enum step begin_tls(struct conn *conn)
{
	struct inject *inject = conn->inject;
	enum step step;
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(inject->ssl);
	if (r == 1) {
		inject->ready = true;
		conn->deadline = 0;
		return PROGRESS;
	}
	step = after_ssl(inject, r);
	if (step == BROKEN) {
		long verified = SSL_get_verify_result(inject->ssl);

		answer_failure(conn, verified != X509_V_OK ? X509_verify_cert_error_string(verified)
							   : "no TLS connection to the host");
	}
	return step;
}

static bool put(struct inject *inject, const char *bytes, size_t n)
{
	if (n > OUT_SIZE - inject->out_len)
		return false;
	memcpy(inject->out + inject->out_len, bytes, n);
	inject->out_len += n;
	return true;
}

static bool put_field(struct inject *inject, const char *name, const char *value)
{
	return put(inject, name, strlen(name)) && put(inject, ": ", 2) && put(inject, value, strlen(value)) &&
	       put(inject, "\r\n", 2);
}

/* Writes the head with our Host and our credential in place of the agent's; 0 or -EBADMSG. */
static int rewrite(struct conn *conn, const char *head, size_t n)
{
	struct inject *inject = conn->inject;
	const char *at = (const char *)memchr(head, '\n', n) + 1, *end = head + n;
	struct cordon_http_field field;
	char host[CORDON_NET_RULE_SIZE];
	bool fits = put(inject, head, (size_t)(at - head));
	int r = 0;

	/* A server that answers these repeats the request with the credential. */
	if (strncasecmp(head, "TRACE ", 6) == 0 || strncasecmp(head, "TRACK ", 6) == 0)
		return -EBADMSG;

	if (conn->port == CORDON_NET_PORT)
		snprintf(host, sizeof(host), "%s", conn->name->text);
	else
		net_host_port(conn->name->text, conn->port, host);
	fits = fits && put_field(inject, "Host", host) &&
	       put_field(inject, inject->credential->header, inject->credential->value);
	for (const char *line = at; fits && (r = cordon_http_field_next(&at, end, &field)) == 1; line = at)
		if (!cordon_http_field_is(&field, "Host") && !cordon_http_field_is(&field, inject->credential->header))
			fits = put(inject, line, (size_t)(at - line));
	return fits && r == 0 && put(inject, "\r\n", 2) ? 0 : -EBADMSG;
}

/* Takes one step of the requests that are there: a head, or a part of a body. */
static enum step take_request(struct conn *conn)
{
	struct inject *inject = conn->inject;
	bool head = !inject->opaque && inject->http.state == CORDON_HTTP_HEAD;
	/* A part of a body goes through the buffer as it is. */
	size_t most = head || conn->len < OUT_SIZE ? conn->len : OUT_SIZE;
	ssize_t n = inject->opaque ? (ssize_t)most : cordon_http_step(&inject->http, conn->bytes, most);

	if (n < 0 || (head && n > 0 && rewrite(conn, conn->bytes, (size_t)n) < 0)) {
		answer_failure(conn, "this request is not one that the endpoint understands");
		return BROKEN;
	}
	if (n == 0)
		return WAITS;
	if (!head && !put(inject, conn->bytes, (size_t)n))
		return BROKEN;
	conn->len -= (size_t)n;
	memmove(conn->bytes, conn->bytes + n, conn->len);
	return PROGRESS;
}

/* From the run to the host. */
static enum step move_out(struct conn *conn)
{
	struct inject *inject = conn->inject;
	enum step step;
	ssize_t n;

	if (inject->out_at < inject->out_len) {
		ERR_clear_error();
		n = SSL_write(inject->ssl, inject->out + inject->out_at, (int)(inject->out_len - inject->out_at));
		if (n <= 0)
			return after_ssl(inject, (int)n);
		inject->out_at += (size_t)n;
		return PROGRESS;
	}
	inject->out_len = inject->out_at = 0;
	if (inject->http.websocket && !inject->opaque)
		return WAITS; /* until the answer shows what follows */
	step = conn->len ? take_request(conn) : WAITS;
	if (step != WAITS || conn->flows[0].end)
		return step;
	if (!net_conn_room(conn, OUT_SIZE))
		return BROKEN;
	n = recv(conn->in.fd, conn->bytes + conn->len, conn->size - conn->len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? WAITS : BROKEN;
	conn->flows[0].end = n == 0;
	conn->len += (size_t)n;
	return n ? PROGRESS : WAITS;
}

/* From the host to the run. */
static enum step move_in(struct conn *conn)
{
	static const char upgraded[] = "HTTP/1.1 101 ";
	struct inject *inject = conn->inject;
	int n;

	if (inject->back_at < inject->back_len) {
		ssize_t sent = send(conn->in.fd, inject->back + inject->back_at, inject->back_len - inject->back_at,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0)
			return errno == EAGAIN || errno == EINTR ? WAITS : BROKEN;
		inject->back_at += (size_t)sent;
		return PROGRESS;
	}
	if (inject->over)
		return WAITS;
	ERR_clear_error();
	n = SSL_read(inject->ssl, inject->back, BACK_SIZE);
	if (n <= 0) {
		inject->back_len = inject->back_at = 0;
		if (after_ssl(inject, n) == WAITS)
			return WAITS;
		inject->over = true; /* in order, or cut off: then the run sees an incomplete answer */
		return PROGRESS;
	}
	if (inject->http.websocket && inject->http.requests == 1)
		inject->opaque = (size_t)n >= sizeof(upgraded) - 1 &&
				 memcmp(inject->back, upgraded, sizeof(upgraded) - 1) == 0;
	inject->http.websocket = false;
	inject->back_len = (size_t)n;
	inject->back_at = 0;
	return PROGRESS;
}

void net_inject_relay(struct conn *conn)
{
	struct inject *inject = conn->inject;
	enum step out = PROGRESS, in = PROGRESS;

	if (!inject->ready) {
		enum step step = begin_tls(conn);

		if (step == BROKEN)
			net_conn_end(conn, false);
		if (step != PROGRESS)
			return;
	}
	for (int i = 0; i < TURN_STEPS && (out == PROGRESS || in == PROGRESS); i++) {
		out = move_out(conn);
		in = out == BROKEN ? BROKEN : move_in(conn);
		if (out == BROKEN || in == BROKEN || (inject->over && inject->back_at == inject->back_len)) {
			net_conn_end(conn, false);
			return;
		}
	}
	if (out == PROGRESS || in == PROGRESS)
		net_again(&conn->in);
}
