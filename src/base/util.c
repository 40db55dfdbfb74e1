/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded copies, closing of descriptors, numbers with units, UUIDs. */
#include <limits.h>
#include <stdarg.h>
#include <sys/random.h>

#include "base/util.h"

int cordon_copy(char *dst, size_t size, const char *src, size_t n)
{
	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(dst, src, n);
	dst[n] = '\0';
	return 0;
}

void cordon_close_except(const int *kept, size_t n)
{
	for (unsigned int from = 3;;) {
		unsigned int next = ~0U;

		for (size_t i = 0; i < n; i++)
			if (kept[i] >= 0 && (unsigned int)kept[i] >= from && (unsigned int)kept[i] < next)
				next = (unsigned int)kept[i];
		if (next > from)
			(void)close_range(from, next == ~0U ? next : next - 1, 0);
		if (next == ~0U)
			return;
		from = next + 1;
	}
}

/* Reads leading digits only, so that no sign, blank or base prefix slips in as it would with strtoull. */
static int parse_digits(const char **s, uint64_t *ret_value)
{
	const char *p = *s;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		unsigned int digit = (unsigned int)(*p - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		value = value * 10 + digit;
	}
	*s = p;
	*ret_value = value;
	return 0;
}

int cordon_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	uint64_t value;
	int r = parse_digits(&s, &value);

	if (r < 0)
		return r;
	if (*s)
		return -EINVAL;
	if (value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

static int scale(uint64_t value, uint64_t factor, uint64_t *ret_value)
{
	if (factor && value > UINT64_MAX / factor)
		return -ERANGE;
	*ret_value = value * factor;
	return 0;
}

int cordon_parse_duration(const char *s, uint64_t bare_ms, uint64_t *ret_ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
	uint64_t value;
	int r = parse_digits(&s, &value);

	if (r < 0)
		return r;
	if (!*s)
		return scale(value, bare_ms, ret_ms);
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(units); i++)
		if (cordon_streq(s, units[i].unit))
			return scale(value, units[i].ms, ret_ms);
	return -EINVAL;
}

int cordon_parse_size(const char *s, uint64_t *ret_bytes)
{
	static const char letters[] = "kmgt";
	uint64_t value, factor = 1;
	int r = parse_digits(&s, &value);

	if (r < 0)
		return r;
	for (size_t i = 0; *s && letters[i]; i++) {
		if ((*s | 0x20) != letters[i])
			continue;
		factor = (uint64_t)1 << (10 * (i + 1));
		s++;
		break;
	}
	if (factor > 1 && *s == 'i')
		s++;
	if (*s == 'B')
		s++;
	if (*s)
		return -EINVAL;
	return scale(value, factor, ret_bytes);
}

int cordon_uuid_new(char ret[static CORDON_UUID_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	unsigned char b[16];
	char *p = ret;

	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
		return -errno;
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		*p++ = hex[b[i] >> 4];
		*p++ = hex[b[i] & 15];
	}
	*p = '\0';
	return 0;
}

bool cordon_uuid_valid(const char *s)
{
	size_t i;

	for (i = 0; i < 36 && s[i]; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s[i] != '-' : !((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
			return false;
	}
	return i == 36 && !s[i];
}

const char *cordon_digits(uint64_t value, char buf[static CORDON_DIGITS_SIZE])
{
	char *p = buf + CORDON_DIGITS_SIZE - 1; /* cppcheck-suppress ctuPointerArith ; the last of its bytes */

	*p = '\0';
	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	return p;
}

int cordon_concat(char *dst, size_t size, ...)
{
	const char *part;
	size_t len = 0;
	va_list parts;
	int r = 0;

	va_start(parts, size);
	while (r == 0 && (part = va_arg(parts, const char *))) {
		size_t n = strlen(part);

		r = cordon_copy(dst + len, size - len, part, n);
		len += n;
	}
	va_end(parts);
	if (r < 0 || !len)
		*dst = '\0';
	return r;
}

const char *cordon_fd_path(int fd, char buf[static CORDON_FD_PATH_SIZE])
{
	char digits[CORDON_DIGITS_SIZE];

	cordon_concat(buf, CORDON_FD_PATH_SIZE, "/proc/self/fd/", cordon_digits((uint64_t)fd, digits), (char *)NULL);
	return buf;
}
