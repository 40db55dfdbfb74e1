/* SPDX-License-Identifier: Apache-2.0 */
/* Turns one record into text, and back. */
#include <limits.h>
#include <sodium.h>
#include <stdio.h>

#include "audit/record.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time.h"

#define FRONT_MAX 192 /* {"v":1,"seq":…,"prev":"…","time":"…", */
#define BODY_MAX (CORDON_AUDIT_LINE_MAX - FRONT_MAX - 1)
#define MEMBERS_MAX 24 /* members kept of a detail object that must be cut */
#define KEY_MAX 64     /* length of a member's name there */

/* How long a string, or a member of detail, may be in the line: the first of these that makes the body fit is used.
 * The last one always fits: 13 fields and 24 members of at most 128 bytes, and their keys. */
static const size_t cuts[] = { BODY_MAX, 2048, 512, 128 };

static const char *const type_names[] = {
	[CORDON_AUDIT_START] = "start",
	[CORDON_AUDIT_END] = "end",
	[CORDON_AUDIT_VIOLATION] = "violation",
	[CORDON_AUDIT_PROTECTED_LOST] = "protected_lost",
	[CORDON_AUDIT_PROTECTED_CREATED] = "protected_created",
	[CORDON_AUDIT_GRANT] = "grant",
	[CORDON_AUDIT_REFUSAL] = "refusal",
	[CORDON_AUDIT_LIMIT] = "limit",
	[CORDON_AUDIT_GC] = "gc",
	[CORDON_AUDIT_CHANGES] = "changes",
	[CORDON_AUDIT_CALL] = "call",
	[CORDON_AUDIT_APPROVAL] = "approval",
	[CORDON_AUDIT_DROPPED] = "dropped",
	[CORDON_AUDIT_ROTATED] = "rotated",
	[CORDON_AUDIT_PRUNED] = "pruned",
	[CORDON_AUDIT_REPAIRED] = "repaired",
};

const char *cordon_audit_type_name(cordon_audit_type type)
{
	return (unsigned int)type < CORDON_AUDIT__MAX ? type_names[type] : "unknown";
}

int cordon_audit_type_parse(const char *name, size_t n, cordon_audit_type *ret_type)
{
	for (size_t i = 0; i < CORDON_AUDIT__MAX; i++) {
		if (strlen(type_names[i]) != n || memcmp(type_names[i], name, n) != 0)
			continue;
		*ret_type = (cordon_audit_type)i;
		return 0;
	}
	return -ENOENT;
}

json_t *cordon_audit_text(const char *s)
{
	autobuf struct cordon_buf buf = CORDON_BUF(CORDON_AUDIT_LINE_MAX);
	size_t n;

	if (!s)
		return NULL;
	/* A text that is too long for a record is cut later anyway; here the cut must be between whole escapes. */
	n = strnlen(s, CORDON_AUDIT_LINE_MAX / 10);
	while (n && s[n] && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	if (cordon_text_escape(&buf, s, n) < 0)
		return NULL;
	return json_stringn(buf.data, buf.len);
}

/* The body that is being written, with the names of the fields that were cut. */
struct body {
	struct cordon_buf *buf;
	size_t start;
	size_t cut;
	char cut_names[256];
};

static void note_cut(struct body *b, const char *key)
{
	size_t at = strlen(b->cut_names);

	snprintf(b->cut_names + at, sizeof(b->cut_names) - at, "%s\"%s\"", at ? "," : "", key);
}

static int add_key(struct body *b, const char *key)
{
	return cordon_buf_addf(b->buf, "%s\"%s\":", b->buf->len == b->start ? "" : ",", key);
}

/* Writes one character of a string as safe text inside a JSON string; in safe text JSON must escape only quotes and
 * backslashes. */
static size_t json_char(const char *s, size_t n, char out[static 32])
{
	char safe[16];
	size_t len = 0;

	cordon_text_escape_fixed(safe, sizeof(safe), s, n);
	for (const char *p = safe; *p; p++) {
		if (*p == '"' || *p == '\\')
			out[len++] = '\\';
		out[len++] = *p;
	}
	return len;
}

static int add_text(struct body *b, const char *key, const char *s)
{
	size_t begin, n;
	int r;

	if (!s)
		return 0;
	r = add_key(b, key);
	if (r == 0)
		r = cordon_buf_addc(b->buf, '"');
	begin = b->buf->len;
	n = strlen(s);
	for (size_t i = 0; r == 0 && i < n;) {
		size_t len = cordon_utf8_char(s + i, n - i);
		char out[32];
		size_t out_len;

		if (!len)
			len = 1;
		out_len = json_char(s + i, len, out);
		if (b->buf->len - begin + out_len > b->cut) {
			note_cut(b, key);
			break;
		}
		r = cordon_buf_add(b->buf, out, out_len);
		i += len;
	}
	return r < 0 ? r : cordon_buf_addc(b->buf, '"');
}

static size_t dumped_size(const json_t *value)
{
	return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
}

/* Returns the part of a string or an array that fits; NULL for other values. */
static json_t *cut_value(json_t *value, size_t max)
{
	if (dumped_size(value) <= max)
		return json_incref(value);
	if (json_is_string(value)) {
		const char *s = json_string_value(value);
		size_t n = json_string_length(value), keep = max / 6; /* \uNNNN for a character of one byte */

		keep = keep < n ? keep : n;
		while (keep && ((unsigned char)s[keep] & 0xc0) == 0x80)
			keep--;
		return json_stringn(s, keep);
	}
	if (json_is_array(value)) {
		json_t *array = json_array();
		size_t used = 2;

		for (size_t i = 0; array && i < json_array_size(value); i++) {
			json_t *element = json_array_get(value, i);

			used += dumped_size(element) + 1;
			if (used > max || json_array_append(array, element) < 0)
				break;
		}
		return array;
	}
	return NULL;
}

static json_t *cut_detail(json_t *detail, size_t max)
{
	json_t *object = json_object();
	const char *key;
	json_t *value;

	if (!object)
		return NULL;
	json_object_foreach(detail, key, value) {
		json_t *part;
		size_t n = strlen(key);

		if (json_object_size(object) >= MEMBERS_MAX)
			break;
		/* Only names that are as long in JSON as they are in memory. */
		if (n > KEY_MAX || strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_-.") != n)
			continue;
		part = cut_value(value, max);
		if (part)
			json_object_set_new_nocheck(object, key, part);
	}
	return object;
}

static int add_detail(struct body *b, json_t *detail)
{
	json_t *whole = detail;
	size_t size;
	char *room = NULL;
	int r;

	if (!json_is_object(detail) || json_object_size(detail) == 0)
		return 0;
	if (b->cut != BODY_MAX) {
		detail = cut_detail(detail, b->cut);
		if (!detail)
			return -ENOMEM;
		if (!json_equal(whole, detail))
			note_cut(b, "detail");
	} else {
		json_incref(detail);
	}
	r = add_key(b, "detail");
	size = dumped_size(detail);
	if (r == 0) {
		room = cordon_buf_room(b->buf, size);
		if (!room || size == 0)
			r = -E2BIG;
		else if (json_dumpb(detail, room, size, JSON_COMPACT | JSON_ENSURE_ASCII) != size)
			r = -EIO;
	}
	if (r == 0) {
		/* JSON does not escape this control character; it can only be inside a string. */
		for (char *del; (del = memchr(room, 0x7f, size));)
			*del = '?';
		b->buf->len += size;
		b->buf->data[b->buf->len] = '\0';
	}
	json_decref(detail);
	return r;
}

static int add_fields(struct body *b, const struct cordon_audit_ids *ids, const struct cordon_audit_event *event)
{
	const struct {
		const char *key, *value;
	} texts[] = {
		{ "event", cordon_audit_type_name(event->type) },
		{ "session_id", ids ? ids->session_id : NULL },
		{ "project_id", ids ? ids->project_id : NULL },
		{ "agent", ids ? ids->agent : NULL },
		{ "orchestrator_id", ids ? ids->orchestrator_id : NULL },
		{ "workspace_id", ids ? ids->workspace_id : NULL },
		{ "op", event->op },
		{ "path", event->path },
		{ "rule", event->rule },
		{ "mode", event->mode },
		{ "decision", event->decision },
		{ "request_id", event->request_id },
		{ "kind", event->kind ? cordon_kind_name(event->kind) : NULL },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(texts); i++)
		r = add_text(b, texts[i].key, texts[i].value);
	if (r == 0 && event->success != CORDON_AUDIT_NO_SUCCESS_FIELD) {
		r = add_key(b, "success");
		if (r == 0)
			r = cordon_buf_adds(b->buf, event->success == CORDON_AUDIT_SUCCEEDED ? "true" : "false");
	}
	if (r == 0)
		r = add_detail(b, event->detail);
	if (r == 0 && *b->cut_names)
		r = cordon_buf_addf(b->buf, ",\"cut\":[%s]", b->cut_names);
	return r < 0 ? r : cordon_buf_addc(b->buf, '}');
}

int cordon_audit_render_body(const struct cordon_audit_ids *ids, const struct cordon_audit_event *event,
			     struct cordon_buf *ret_body)
{
	size_t start = ret_body->len;
	int r = -E2BIG;

	for (size_t i = 0; i < CORDON_ARRAY_SIZE(cuts); i++) {
		struct body b = { .buf = ret_body, .start = start, .cut = cuts[i] };

		r = add_fields(&b, ids, event);
		if (r == 0 && ret_body->len - start <= BODY_MAX)
			return 0;
		ret_body->len = start;
		if (ret_body->data)
			ret_body->data[start] = '\0';
		if (r < 0 && r != -E2BIG)
			return r;
		r = -E2BIG;
	}
	return r;
}

int cordon_audit_render_line(uint64_t seq, const char *prev, int64_t time, const char *body, size_t n,
			     struct cordon_buf *ret_line)
{
	char when[CORDON_TIME_SIZE];
	int r;

	cordon_time_format(time, when);
	r = cordon_buf_addf(ret_line, "{\"v\":%d,\"seq\":%llu,\"prev\":\"%s\",\"time\":\"%s\",", CORDON_AUDIT_VERSION,
			    (unsigned long long)seq, prev, when);
	if (r == 0)
		r = cordon_buf_add(ret_line, body, n);
	return r < 0 ? r : cordon_buf_addc(ret_line, '\n');
}

bool cordon_audit_front(const char *line, size_t n, uint64_t *ret_seq, const char **ret_time)
{
	static const char begin[] = "{\"v\":1,\"seq\":", prev[] = ",\"prev\":\"", time[] = "\",\"time\":\"";
	size_t at = sizeof(begin) - 1, hash = CORDON_AUDIT_HASH_SIZE - 1;
	uint64_t seq = 0;

	_Static_assert(CORDON_AUDIT_VERSION == 1, "the front of a line names the version");
	if (n < FRONT_MAX - 32 || memcmp(line, begin, at) != 0)
		return false;
	for (; line[at] >= '0' && line[at] <= '9' && seq < UINT64_MAX / 100; at++)
		seq = seq * 10 + (uint64_t)(line[at] - '0');
	if (n - at < sizeof(prev) + hash + sizeof(time) + CORDON_TIME_SIZE ||
	    memcmp(line + at, prev, sizeof(prev) - 1) != 0)
		return false;
	at += sizeof(prev) - 1 + hash;
	if (memcmp(line + at, time, sizeof(time) - 1) != 0 || line[at + sizeof(time) - 1 + CORDON_TIME_SIZE - 1] != '"')
		return false;
	*ret_seq = seq;
	*ret_time = line + at + sizeof(time) - 1;
	return seq > 0;
}

static bool is_hash(const char *s)
{
	return s && strlen(s) == CORDON_AUDIT_HASH_SIZE - 1 &&
	       strspn(s, "0123456789abcdef") == CORDON_AUDIT_HASH_SIZE - 1;
}

int cordon_audit_parse(const char *line, size_t n, struct cordon_audit_record *ret_record)
{
	struct cordon_audit_record record = { .type = CORDON_AUDIT__MAX };
	const char *time;
	json_int_t seq;

	/* With two members of the same name, a person could see one value and a program another. */
	record.object = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(record.object))
		goto bad;
	record.event = cordon_json_string(record.object, "event");
	record.prev = cordon_json_string(record.object, "prev");
	record.session_id = cordon_json_string(record.object, "session_id");
	time = cordon_json_string(record.object, "time");
	seq = cordon_json_integer(record.object, "seq");
	if (cordon_json_integer(record.object, "v") != CORDON_AUDIT_VERSION || !record.event || seq < 1 ||
	    !is_hash(record.prev) || !time || cordon_time_parse(time, &record.time) < 0)
		goto bad;
	record.seq = (uint64_t)seq;
	cordon_audit_type_parse(record.event, strlen(record.event), &record.type);
	*ret_record = record;
	return 0;
bad:
	json_decref(record.object);
	return -EINVAL;
}

void cordon_audit_record_done(struct cordon_audit_record *record)
{
	json_decref(record->object);
	*record = (struct cordon_audit_record){ 0 };
}

const char *cordon_audit_detail_text(const struct cordon_audit_record *record, const char *key)
{
	return cordon_json_string(json_object_get(record->object, "detail"), key);
}

uint64_t cordon_audit_detail_number(const struct cordon_audit_record *record, const char *key)
{
	json_int_t value = cordon_json_integer(json_object_get(record->object, "detail"), key);

	return value > 0 ? (uint64_t)value : 0;
}

/* ---- lines ---- */

void cordon_audit_hash(const char *bytes, size_t n, char ret[static CORDON_AUDIT_HASH_SIZE])
{
	cordon_digest(bytes, n, ret);
}

void cordon_lines_init(struct cordon_lines *lines, int fd, off_t at, off_t limit)
{
	lines->fd = fd;
	lines->at = at;
	lines->limit = limit;
	lines->pos = lines->have = 0;
}

/* Reads more bytes behind those in the buffer; 0 at the end. */
static ssize_t refill(struct cordon_lines *lines)
{
	size_t space;
	ssize_t n;

	if (lines->pos) {
		memmove(lines->buf, lines->buf + lines->pos, lines->have - lines->pos);
		lines->have -= lines->pos;
		lines->pos = 0;
	}
	space = sizeof(lines->buf) - lines->have;
	if (lines->at >= lines->limit)
		return 0;
	if ((off_t)space > lines->limit - lines->at)
		space = (size_t)(lines->limit - lines->at);
	do
		n = pread(lines->fd, lines->buf + lines->have, space, lines->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	lines->at += n;
	lines->have += (size_t)n;
	return n;
}

int cordon_lines_next(struct cordon_lines *lines, struct cordon_line *ret_line)
{
	off_t start = lines->at - (off_t)(lines->have - lines->pos);
	crypto_hash_sha256_state sha;
	unsigned char digest[crypto_hash_sha256_BYTES];
	/* Bytes in the buffer without a newline; bytes of a long line that left the buffer. */
	size_t scanned = 0, before = 0;

	crypto_hash_sha256_init(&sha);
	for (;;) {
		const char *text = lines->buf + lines->pos;
		size_t n = lines->have - lines->pos;
		const char *newline = memchr(text + scanned, '\n', n - scanned);
		ssize_t more;

		if (!newline && n >= CORDON_AUDIT_LINE_MAX) {
			crypto_hash_sha256_update(&sha, (const unsigned char *)text, n);
			before += n;
			lines->pos = lines->have = n = 0;
		}
		if (!newline) {
			scanned = n;
			more = refill(lines);
			if (more < 0)
				return (int)more;
			if (more > 0)
				continue;
			text = lines->buf + lines->pos;
			if (n == 0 && before == 0)
				return 0;
		} else {
			n = (size_t)(newline - text);
		}
		crypto_hash_sha256_update(&sha, (const unsigned char *)text, n);
		crypto_hash_sha256_final(&sha, digest);
		sodium_bin2hex(ret_line->hash, sizeof(ret_line->hash), digest, sizeof(digest));
		lines->pos += n + (newline != NULL);
		ret_line->start = start;
		ret_line->n = before + n;
		ret_line->whole = newline != NULL;
		ret_line->end = start + (off_t)ret_line->n + ret_line->whole;
		ret_line->text = ret_line->n < CORDON_AUDIT_LINE_MAX ? text : NULL;
		return 1;
	}
}
