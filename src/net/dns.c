/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the queries of the run and writes the answers. */
#include "net/dns.h"

#define CLASS_IN 1
#define QUESTION_MAX (255 + 4)
#define LABEL_MAX 63

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static size_t put16(uint8_t *p, unsigned int value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
	return 2;
}

/* Reads the labels of a name into text with dots. Returns the bytes that it takes, or 0 when it does not end within the
 * message or has a form that no question has. *ret_text is "" when a label holds a dot itself. */
static size_t read_name(const uint8_t *p, size_t n, char ret_text[static 256])
{
	size_t at = 0, len = 0;
	bool plain = true;

	for (;;) {
		size_t label;

		if (at >= n || at >= 255)
			return 0;
		label = p[at++];
		if (label == 0)
			break;
		if (label > LABEL_MAX || label > n - at || at + label > 254)
			return 0; /* a pointer, or a label of a kind that nobody uses */
		plain = plain && !memchr(p + at, '.', label);
		if (len)
			ret_text[len++] = '.';
		memcpy(ret_text + len, p + at, label);
		len += label;
		at += label;
	}
	ret_text[plain ? len : 0] = '\0';
	return at;
}

int cordon_dns_parse(const uint8_t *message, size_t n, struct cordon_dns_query *ret_query)
{
	struct cordon_dns_query query = { 0 };
	char text[256];
	size_t name_len;

	if (n < CORDON_DNS_HEADER || (message[2] & 0x80))
		return -EBADMSG;
	query.id = get16(message);
	query.recursion_desired = message[2] & 1;
	if (message[2] & 0x78) {
		*ret_query = query;
		return -EOPNOTSUPP;
	}
	name_len = get16(message + 4) == 1 ? read_name(message + CORDON_DNS_HEADER, n - CORDON_DNS_HEADER, text) : 0;
	if (!name_len || n - CORDON_DNS_HEADER - name_len < 4 || get16(message + 6) != 0) {
		*ret_query = query;
		return -EINVAL;
	}
	query.question_len = name_len + 4;
	query.type = get16(message + CORDON_DNS_HEADER + name_len);
	/* A NUL in a label would cut the text short, so the length is that of the labels. */
	if (get16(message + CORDON_DNS_HEADER + name_len + 2) != CLASS_IN ||
	    (text[0] && cordon_net_name_clean(text, name_len - 2, query.name) < 0))
		query.name[0] = '\0';
	*ret_query = query;
	return 0;
}

size_t cordon_dns_answer(const uint8_t *message, const struct cordon_dns_query *query, enum cordon_dns_rcode rcode,
			 const struct cordon_net_address *address, uint8_t ret[static CORDON_DNS_ANSWER_MAX])
{
	size_t question = query->question_len <= QUESTION_MAX ? query->question_len : 0;
	bool v4 = query->type == CORDON_DNS_A;
	size_t at = 0;

	if (!question)
		address = NULL;
	at += put16(ret + at, query->id);
	at += put16(ret + at, 0x8080u | (query->recursion_desired ? 0x0100u : 0) | rcode);
	at += put16(ret + at, question ? 1 : 0);
	at += put16(ret + at, address ? 1 : 0);
	at += put16(ret + at, 0);
	at += put16(ret + at, 0);
	memcpy(ret + at, message + CORDON_DNS_HEADER, question);
	at += question;
	if (!address)
		return at;
	at += put16(ret + at, 0xc000 | CORDON_DNS_HEADER); /* the name of the question */
	at += put16(ret + at, query->type);
	at += put16(ret + at, CLASS_IN);
	at += put16(ret + at, 0);
	at += put16(ret + at, CORDON_DNS_TTL);
	at += put16(ret + at, v4 ? 4 : 16);
	memcpy(ret + at, address->bytes + (v4 ? 12 : 0), v4 ? 4 : 16);
	return at + (v4 ? 4 : 16);
}
