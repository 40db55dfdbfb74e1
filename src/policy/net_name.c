/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of hosts, and addresses. A name that a person wrote with letters outside ASCII is encoded as RFC 3492 says
 * (Punycode). We have no tables of Unicode: letters of scripts whose case we know are made small, scripts without case
 * are taken as they are, and all other characters are refused with the advice to write the form with "xn--".
 */
#include "policy/net.h"

#include <arpa/inet.h>

#include "base/text.h"

#define LABEL_MAX 63
#define CHARS_MAX 253

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	if (c >= 'A' && c <= 'Z')
		c = (char)(c - 'A' + 'a');
	return c;
}

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* Whether a label is a number in a form that some resolvers take for a part of an address: "127", "0x7f". */
static bool is_number(const char *label, size_t n)
{
	size_t hex = n >= 2 && label[0] == '0' && label[1] == 'x' ? 2 : 0;

	for (size_t i = hex; i < n; i++)
		if (!is_digit(label[i]) && !(hex && label[i] >= 'a' && label[i] <= 'f'))
			return false;
	return true;
}

/* One label in lower case that ends before `end`. */
static const char *label_fault(const char *label, size_t n)
{
	if (n == 0)
		return "a label is empty";
	if (n > LABEL_MAX)
		return "a label has at most 63 characters";
	if (label[0] == '-' || label[n - 1] == '-')
		return "a label neither begins nor ends with a hyphen";
	return NULL;
}

int cordon_net_name_clean(const char *s, size_t n, char ret_name[static CORDON_NET_NAME_SIZE])
{
	char name[CORDON_NET_NAME_SIZE];
	size_t start = 0;

	if (n == 0 || n >= sizeof(name))
		return -EINVAL;
	name[n] = '\0';
	for (size_t i = 0; i <= n; i++) {
		if (i < n)
			name[i] = lower(s[i]);
		if (i < n && name[i] != '.') {
			if (!is_host_char(name[i]))
				return -EINVAL;
			continue;
		}
		if (label_fault(name + start, i - start) || (i == n && is_number(name + start, n - start)))
			return -EINVAL;
		start = i + 1;
	}
	memcpy(ret_name, name, n + 1);
	return 0;
}

/* The small form of a letter outside ASCII that may stand in a name, or 0. */
static uint32_t small_letter(uint32_t c)
{
	static const struct range {
		uint32_t first, last;
	} plain[] = {
		{ 0x0df, 0x0f6 },   { 0x0f8, 0x0ff }, /* Latin-1, small */
		{ 0x3ac, 0x3ce },		      /* Greek, small */
		{ 0x430, 0x45f },		      /* Cyrillic, small */
		{ 0x561, 0x586 },		      /* Armenian, small */
		{ 0x5d0, 0x5ea },		      /* Hebrew */
		{ 0x620, 0x63f },   { 0x641, 0x64a }, /* Arabic */
		{ 0x660, 0x669 },   { 0x671, 0x674 },	{ 0x679, 0x6d3 },
		{ 0x904, 0x939 },   { 0x93e, 0x94d },			      /* Devanagari */
		{ 0xe01, 0xe32 },   { 0xe34, 0xe3a },	{ 0xe40, 0xe4e },     /* Thai */
		{ 0x10d0, 0x10fa },					      /* Georgian */
		{ 0x3041, 0x3096 }, { 0x30a1, 0x30fa }, { 0x30fc, 0x30fe },   /* kana */
		{ 0x3400, 0x4dbf }, { 0x4e00, 0x9fff }, { 0x20000, 0x2a6df }, /* Han */
		{ 0xac00, 0xd7a3 },					      /* Hangul */
	};

	if ((c >= 0xc0 && c <= 0xd6) || (c >= 0xd8 && c <= 0xde) || (c >= 0x410 && c <= 0x42f))
		return c + 0x20;
	if (c >= 0x400 && c <= 0x40f)
		return c + 0x50;
	if ((c >= 0x391 && c <= 0x3a1) || (c >= 0x3a3 && c <= 0x3ab))
		return c + 0x20;
	/* Latin Extended-A stands in pairs; 0x130 to 0x133, 0x13f, 0x140, 0x149 and 0x17f have mappings of their own. */
	if ((c >= 0x100 && c <= 0x12f) || (c >= 0x134 && c <= 0x137) || (c >= 0x14a && c <= 0x177))
		return c | 1;
	if ((c >= 0x139 && c <= 0x13e) || (c >= 0x141 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
		return (c & 1) ? c + 1 : c;
	if (c == 0x138)
		return c;
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(plain); i++)
		if (c >= plain[i].first && c <= plain[i].last)
			return c;
	return 0;
}

static char puny_digit(uint32_t d)
{
	return (char)(d < 26 ? 'a' + d : '0' + d - 26);
}

static uint32_t puny_adapt(uint32_t delta, uint32_t points, bool first)
{
	uint32_t k = 0;

	delta = first ? delta / 700 : delta / 2;
	delta += delta / points;
	for (; delta > 35 * 26 / 2; k += 36)
		delta /= 35;
	return k + 36 * delta / (delta + 38);
}

/* Encodes one label of `n` code points into `ret` of `size` without the "xn--"; the length, or -ENAMETOOLONG. */
static int puny_encode(const uint32_t *points, size_t n, char *ret, size_t size)
{
	uint32_t code = 128, delta = 0, bias = 72, handled = 0, basic;
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		if (points[i] < 128 && len < size)
			ret[len++] = (char)points[i];
	handled = basic = (uint32_t)len;
	if (basic && len < size)
		ret[len++] = '-';
	while (handled < n) {
		uint32_t next = UINT32_MAX;

		for (size_t i = 0; i < n; i++)
			if (points[i] >= code && points[i] < next)
				next = points[i];
		/* At most 253 points below 0x30000, so this stays far below 2^32. */
		delta += (next - code) * (handled + 1);
		code = next;
		for (size_t i = 0; i < n; i++) {
			uint32_t q = delta;

			if (points[i] < code)
				delta++;
			if (points[i] != code)
				continue;
			for (uint32_t k = 36;; k += 36) {
				uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;

				if (len >= size)
					return -ENAMETOOLONG;
				if (q < t)
					break;
				ret[len++] = puny_digit(t + (q - t) % (36 - t));
				q = (q - t) / (36 - t);
			}
			ret[len++] = puny_digit(q);
			bias = puny_adapt(delta, handled + 1, handled == basic);
			delta = 0;
			handled++;
		}
		delta++;
		code++;
	}
	return (int)len;
}

struct encoder {
	char name[CORDON_NET_NAME_SIZE];
	size_t len;
	uint32_t label[CHARS_MAX];
	size_t n_label;
	bool foreign; /* the label has a letter outside ASCII */
};

/* Appends the label that was read; NULL, or what is wrong with it. */
static const char *end_label(struct encoder *e, bool last)
{
	static const char encoded[4] = { 'x', 'n', '-', '-' };
	char text[LABEL_MAX + 1];
	const char *fault;
	size_t n = 0;
	int r;

	if (e->foreign) {
		memcpy(text, encoded, sizeof(encoded));
		r = puny_encode(e->label, e->n_label, text + sizeof(encoded), LABEL_MAX - sizeof(encoded));
		if (r < 0)
			return "a label has at most 63 characters, also in its encoded form";
		n = sizeof(encoded) + (size_t)r;
	} else {
		if (e->n_label > LABEL_MAX)
			return "a label has at most 63 characters";
		for (; n < e->n_label; n++)
			text[n] = (char)e->label[n];
	}
	fault = label_fault(text, n);
	if (fault)
		return fault;
	if (last && is_number(text, n))
		return "a name does not end with a number, and this is no address of four";
	if (e->len + n + !last > CHARS_MAX)
		return "a name has at most 253 characters";
	memcpy(e->name + e->len, text, n);
	e->len += n;
	if (!last)
		e->name[e->len++] = '.';
	e->n_label = 0;
	e->foreign = false;
	return NULL;
}

static const char *add_char(struct encoder *e, uint32_t c)
{
	uint32_t small = c < 128 ? (uint32_t)lower((char)c) : small_letter(c);

	if (c < 128 && !is_host_char((char)small))
		return c == 0 ? "there is a NUL in it" : "a name has letters, digits, hyphens and dots";
	if (!small)
		return "this character is not taken as it is; write the form of the name that begins with xn--";
	if (e->n_label == CHARS_MAX)
		return "a name has at most 253 characters";
	e->label[e->n_label++] = small;
	e->foreign |= c >= 128;
	return NULL;
}

int cordon_net_name_encode(const char *s, size_t n, char ret_name[static CORDON_NET_NAME_SIZE], size_t *ret_column,
			   const char **ret_why)
{
	struct encoder e = { .len = 0 };
	const char *why = n ? NULL : "the name is empty";
	size_t column = 1, begin = 1, len;

	for (size_t i = 0; !why && i < n; i += len, column++) {
		len = cordon_utf8_char(s + i, n - i);
		if (!len) {
			why = "this is not UTF-8";
			break;
		}
		if (s[i] != '.') {
			why = add_char(&e, cordon_utf8_decode(s + i, len));
			if (why)
				break;
			continue;
		}
		if (i + 1 == n) {
			why = "a name ends without a dot";
			break;
		}
		why = end_label(&e, false);
		if (why) {
			column = begin;
			break;
		}
		begin = column + 1;
	}
	if (!why && (why = end_label(&e, true)))
		column = begin;
	if (why) {
		*ret_column = column;
		*ret_why = why;
		return -EINVAL;
	}
	e.name[e.len] = '\0';
	memcpy(ret_name, e.name, e.len + 1);
	return 0;
}

int cordon_net_address_parse(const char *s, size_t n, struct cordon_net_address *ret_address)
{
	struct cordon_net_address address = { { [10] = 0xff, [11] = 0xff } };
	char text[CORDON_NET_ADDRESS_SIZE];

	if (memchr(s, '\0', n) || cordon_copy(text, sizeof(text), s, n) < 0)
		return -EINVAL;
	if (inet_pton(AF_INET, text, address.bytes + 12) != 1 && inet_pton(AF_INET6, text, address.bytes) != 1)
		return -EINVAL;
	*ret_address = address;
	return 0;
}

bool cordon_net_address_is_localhost(const struct cordon_net_address *address)
{
	static const struct cordon_net_address v4 = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	static const struct cordon_net_address v6 = { { [15] = 1 } };

	return memcmp(address, &v4, sizeof(v4)) == 0 || memcmp(address, &v6, sizeof(v6)) == 0;
}

bool cordon_net_address_is_v4(const struct cordon_net_address *address)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(address->bytes, mapped, sizeof(mapped)) == 0;
}

void cordon_net_address_text(const struct cordon_net_address *address, char ret[static CORDON_NET_ADDRESS_SIZE])
{
	if (cordon_net_address_is_v4(address))
		inet_ntop(AF_INET, address->bytes + 12, ret, CORDON_NET_ADDRESS_SIZE);
	else
		inet_ntop(AF_INET6, address->bytes, ret, CORDON_NET_ADDRESS_SIZE);
}
