/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the server name in a ClientHello, which may be cut into several TLS records. */
#include "net/hello.h"

#define RECORD_HEADER 5
#define RECORD_MAX 16384
#define CLIENT_HELLO 1
#define EXTENSION_SERVER_NAME 0
#define EXTENSION_ENCRYPTED_HELLO 0xfe0d
#define HOST_NAME 0

/* What is left of a message; a read past its end sets `bad`, and every later one gives 0. */
struct cursor {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static const uint8_t *take(struct cursor *c, size_t n)
{
	const uint8_t *at = c->at;

	if (c->bad || n > c->left) {
		c->bad = true;
		return NULL;
	}
	c->at += n;
	c->left -= n;
	return at;
}

static size_t take_number(struct cursor *c, size_t bytes)
{
	const uint8_t *p = take(c, bytes);
	size_t value = 0;

	for (size_t i = 0; p && i < bytes; i++)
		value = value << 8 | p[i];
	return value;
}

/* A field that begins with its own length, of so many bytes. */
static struct cursor take_field(struct cursor *c, size_t bytes)
{
	size_t n = take_number(c, bytes);
	const uint8_t *at = take(c, n);

	return (struct cursor){ .at = at, .left = at ? n : 0, .bad = at == NULL };
}

/* Joins the handshake bytes of the records. Returns how many, or a negative errno; *ret_taken is how many bytes of the
 * stream these records are, or 0 when the message is not complete. */
static ssize_t join(const uint8_t *bytes, size_t n, uint8_t *ret, size_t *ret_taken)
{
	size_t len = 0, taken = 0;

	*ret_taken = 0;
	while (n > 0) {
		size_t record, have;

		if (bytes[0] != CORDON_TLS_HANDSHAKE || (n > 1 && bytes[1] != 3))
			return -EBADMSG;
		if (n < RECORD_HEADER)
			break;
		record = (size_t)bytes[3] << 8 | bytes[4];
		if (record == 0 || record > RECORD_MAX)
			return -EBADMSG;
		have = n - RECORD_HEADER < record ? n - RECORD_HEADER : record;
		if (have > CORDON_HELLO_MAX - len)
			return -EMSGSIZE;
		memcpy(ret + len, bytes + RECORD_HEADER, have);
		len += have;
		taken += RECORD_HEADER + record;
		if (len >= 4 && len - 4 >= ((size_t)ret[1] << 16 | (size_t)ret[2] << 8 | ret[3])) {
			/* No client begins another message in the record in which this one ends. */
			if (have < record || len - 4 > ((size_t)ret[1] << 16 | (size_t)ret[2] << 8 | ret[3]))
				return -EBADMSG;
			*ret_taken = taken;
			break;
		}
		if (have < record)
			break;
		bytes += RECORD_HEADER + record;
		n -= RECORD_HEADER + record;
	}
	return (ssize_t)len;
}

static int read_server_name(struct cursor list, char ret_name[static CORDON_NET_NAME_SIZE])
{
	struct cursor names = take_field(&list, 2);
	bool host_name = take_number(&names, 1) == HOST_NAME;
	struct cursor name = take_field(&names, 2);

	/* One name, and nothing behind it: another reader of the same bytes must not find another one. */
	if (names.bad || name.bad || !host_name || names.left || list.left || !name.left)
		return -EBADMSG;
	return cordon_net_name_clean((const char *)name.at, name.left, ret_name) < 0 ? -EBADMSG : 1;
}

static int read_extensions(struct cursor extensions, char ret_name[static CORDON_NET_NAME_SIZE])
{
	char name[CORDON_NET_NAME_SIZE];
	bool found = false;

	while (extensions.left) {
		size_t type = take_number(&extensions, 2);
		struct cursor content = take_field(&extensions, 2);

		if (extensions.bad || content.bad)
			return -EBADMSG;
		if (type == EXTENSION_ENCRYPTED_HELLO)
			return -EPROTONOSUPPORT;
		if (type != EXTENSION_SERVER_NAME)
			continue;
		if (found || read_server_name(content, name) < 0)
			return -EBADMSG;
		found = true;
	}
	if (!found)
		return -ENOENT;
	memcpy(ret_name, name, sizeof(name));
	return 1;
}

ssize_t cordon_hello_name(const uint8_t *bytes, size_t n, char ret_name[static CORDON_NET_NAME_SIZE])
{
	CORDON_UNCLEARED uint8_t message[CORDON_HELLO_MAX];
	struct cursor hello, session, ciphers, methods, extensions;
	size_t length, taken;
	ssize_t len;
	int r;

	len = join(bytes, n, message, &taken);
	if (len < 0)
		return len;
	if (len > 0 && message[0] != CLIENT_HELLO)
		return -EBADMSG;
	if (len < 4)
		return 0;
	length = (size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3];
	if (length > CORDON_HELLO_MAX - 4)
		return -EMSGSIZE;
	if (!taken)
		return 0;
	hello = (struct cursor){ .at = message + 4, .left = length };
	take(&hello, 2 + 32); /* version and random bytes */
	session = take_field(&hello, 1);
	ciphers = take_field(&hello, 2);
	methods = take_field(&hello, 1);
	if (hello.bad || session.bad || ciphers.bad || methods.bad)
		return -EBADMSG;
	if (!hello.left)
		return -ENOENT;
	extensions = take_field(&hello, 2);
	if (extensions.bad || hello.left)
		return -EBADMSG;
	r = read_extensions(extensions, ret_name);
	return r < 0 ? r : (ssize_t)taken;
}
