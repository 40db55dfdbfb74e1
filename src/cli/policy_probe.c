/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cordon policy test --live` runs inside the sandbox: it tries each thing and writes `+` (it worked), `-` (it was
 * refused) or `?` (it failed otherwise). The root is a view that is thrown away, so that it may make files there.
 */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <resolv.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "cli/policy_live.h"
#include "policy/net.h"

#define INPUT_MAX (64u << 20)
#define CONNECT_MS 3000
#define OPEN_FLAGS (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static char of_errno(int code)
{
	switch (code) {
	case EACCES:
	case EPERM:
	case EROFS:
	case ENOENT: /* what is hidden does not exist */
	case ENOTDIR:
	case ECONNREFUSED:
	case ENETUNREACH:
	case EHOSTUNREACH:
		return '-';
	case ETXTBSY: /* it may be written, as soon as nobody executes it */
		return '+';
	default:
		return '?';
	}
}

static char try_open(const char *path, int flags)
{
	int fd = open(path, flags | OPEN_FLAGS, 0600);

	if (fd < 0)
		return of_errno(errno);
	close(fd);
	return '+';
}

/* Makes the file, and takes it away again for the questions that follow. */
static char try_make(const char *path)
{
	char answer = try_open(path, O_WRONLY | O_CREAT | O_EXCL);

	if (answer == '+')
		unlink(path);
	return answer;
}

static char try_write(const char *path)
{
	char dir[CORDON_PATH_MAX];
	struct stat st;

	if (stat(path, &st) == 0)
		return try_open(path, O_WRONLY);
	/* A run that may write the file may make the directories above it. */
	for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/'))
		if (cordon_copy(dir, sizeof(dir), path, (size_t)(p - path)) == 0)
			mkdir(dir, 0700);
	return try_make(path);
}

static char try_make_in(const char *dir)
{
	char path[CORDON_PATH_MAX];

	return cordon_path_join(dir, CORDON_LIVE_PROBE, path, sizeof(path)) < 0 ? '?' : try_make(path);
}

static char try_connect(const struct sockaddr *address, socklen_t len)
{
	autofd int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	int code = 0;
	socklen_t size = sizeof(code);

	if (fd < 0)
		return of_errno(errno == EAFNOSUPPORT ? ENETUNREACH : errno);
	if (connect(fd, address, len) == 0)
		return '+';
	if (errno != EINPROGRESS)
		return of_errno(errno);
	if (poll(&wait, 1, CONNECT_MS) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
		return '?';
	return code ? of_errno(code) : '+';
}

static char connect_to(const void *bytes, bool v6, uint16_t port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (v6) {
		memcpy(&six.sin6_addr, bytes, sizeof(six.sin6_addr));
		return try_connect((const struct sockaddr *)&six, sizeof(six));
	}
	memcpy(&four.sin_addr, bytes, sizeof(four.sin_addr));
	return try_connect((const struct sockaddr *)&four, sizeof(four));
}

static char connect_name(const char *name, uint16_t port, bool v6)
{
	unsigned char answer[4096];
	char found = '-'; /* a name without an address of this kind leads nowhere */
	int n = res_query(name, ns_c_in, v6 ? ns_t_aaaa : ns_t_a, answer, sizeof(answer));
	ns_msg message;

	if (n < 0)
		return h_errno == HOST_NOT_FOUND || h_errno == NO_DATA ? '-' : '?';
	if (ns_initparse(answer, n, &message) < 0)
		return '?';
	for (int i = 0; found != '+' && i < ns_msg_count(message, ns_s_an); i++) {
		ns_rr record;

		if (ns_parserr(&message, ns_s_an, i, &record) == 0 && ns_rr_type(record) == (v6 ? ns_t_aaaa : ns_t_a) &&
		    ns_rr_rdlen(record) == (v6 ? 16 : 4))
			found = connect_to(ns_rr_rdata(record), v6, port);
	}
	return found;
}

/* HOST:PORT, as rules write it. */
static char try_host(const char *text)
{
	struct cordon_net_rule rule;
	char answer;

	if (cordon_net_rule_parse(text, strlen(text), &rule, NULL) < 0)
		return '?';
	if (rule.kind == CORDON_NET_KIND_ADDRESS)
		return cordon_net_address_is_v4(&rule.address) ? connect_to(rule.address.bytes + 12, false, rule.port)
							       : connect_to(rule.address.bytes, true, rule.port);
	if (rule.kind == CORDON_NET_KIND_LOCALHOST)
		return connect_to((const unsigned char[]){ 127, 0, 0, 1 }, false, rule.port);
	answer = connect_name(rule.name, rule.port, false);
	return answer == '+' ? answer : connect_name(rule.name, rule.port, true) == '+' ? '+' : answer;
}

static char try_one(char op, const char *subject)
{
	switch (op) {
	case 'r':
		return try_open(subject, O_RDONLY);
	case 'w':
		return try_write(subject);
	case 'd':
		return try_make_in(subject);
	case 'c':
		return try_host(subject);
	case 'n': /* without a network no address can be reached, whatever a name stands for */
		return connect_to((const unsigned char[]){ 192, 0, 2, 1 }, false, 443);
	default:
		return '?';
	}
}

int cordon_live_probe(void)
{
	autobuf struct cordon_buf input = CORDON_BUF(INPUT_MAX);
	char chunk[8192];
	ssize_t n;

	while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) > 0)
		if (cordon_buf_add(&input, chunk, (size_t)n) < 0)
			return 1;
	if (n < 0 || (input.len && input.data[input.len - 1]))
		return 1;
	res_init();
	_res.retrans = 2;
	_res.retry = 1;
	for (size_t at = 0; at < input.len; at += strlen(input.data + at) + 1) {
		char answer = try_one(input.data[at], input.data + at + 1);

		if (cordon_write_all(STDOUT_FILENO, &answer, 1) < 0)
			return 1;
	}
	return 0;
}
