/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the audit log: forged lines and heads, and records made of any bytes. */
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "audit/chain.h"
#include "audit/query.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A memory file with the input. */
static int input_file(const char *text, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) < 0 || pwrite(fd, text, size, 0) != (ssize_t)size)
		abort();
	return fd;
}

static void check_record(const char *line, size_t n)
{
	static const struct cordon_audit_filter filter = { .has_since = true,
							   .types = 1 << CORDON_AUDIT_END,
							   .run = "abcd" };
	autobuf struct cordon_buf text = CORDON_BUF(16 * 65536);
	autorecord struct cordon_audit_record record = { 0 };

	if (cordon_audit_parse(line, n, &record) < 0)
		return;
	assert(record.seq >= 1 && record.event && strlen(record.prev) == CORDON_AUDIT_HASH_SIZE - 1);
	if (cordon_audit_match(&filter, &record))
		assert(record.type == CORDON_AUDIT_END && strncmp(record.session_id, "abcd", 4) == 0);
	cordon_audit_detail_text(&record, "reason");
	cordon_audit_detail_number(&record, "count");
	if (cordon_audit_format(&record, false, &text) == 0)
		assert(cordon_text_safe(text.data, text.len));
}

/* Lines must add up to the file, each with the hash of its bytes. */
static void check_lines(const char *text, size_t size)
{
	static struct cordon_lines lines;
	struct cordon_chain_head head;
	struct cordon_line line;
	int fd = input_file(text, size);
	off_t at = 0;

	cordon_lines_init(&lines, fd, 0, (off_t)size);
	while (cordon_lines_next(&lines, &line) > 0) {
		char hash[CORDON_AUDIT_HASH_SIZE];

		assert(line.start == at && line.end > at && (size_t)line.end <= size);
		cordon_audit_hash(text + at, line.n, hash);
		assert(cordon_streq(hash, line.hash));
		assert(line.whole || (size_t)line.end == size);
		if (line.text)
			check_record(line.text, line.n);
		at = line.end;
	}
	assert((size_t)at == size);
	if (cordon_chain_head_read(fd, &head) == 0)
		assert(head.file >= 1 && strlen(head.hash) == CORDON_AUDIT_HASH_SIZE - 1);
}

/* Whatever an event contains, its line can be read back and shown. */
static void check_render(const char *text, size_t size)
{
	const struct cordon_audit_ids ids = { .session_id = text, .agent = text };
	json_t *words = json_array();
	json_t *detail = json_pack("{s:o?, s:o}", "text", cordon_audit_text(text), "words", words);
	struct cordon_audit_event event = { .type = (cordon_audit_type)(size % CORDON_AUDIT__MAX),
					    .op = text,
					    .path = text,
					    .rule = text,
					    .detail = detail };
	autobuf struct cordon_buf body = CORDON_BUF(CORDON_AUDIT_LINE_MAX), line = CORDON_BUF(CORDON_AUDIT_LINE_MAX);
	struct cordon_audit_record record;

	for (size_t i = 0; i < size && i < 2000; i += 97)
		json_array_append_new(words, cordon_audit_text(text + i));
	if (cordon_audit_render_body(&ids, &event, &body) < 0 ||
	    cordon_audit_render_line(1, CORDON_AUDIT_HASH_NONE, 0, body.data, body.len, &line) < 0)
		abort();
	assert(line.len <= CORDON_AUDIT_LINE_MAX && cordon_text_safe(line.data, line.len - 1));
	assert(!memchr(line.data, '\n', line.len - 1));
	assert(cordon_audit_parse(line.data, line.len - 1, &record) == 0);
	cordon_audit_record_done(&record);
	json_decref(detail);
}

static void check_options(const char *text)
{
	struct cordon_audit_filter filter = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_audit_since_parse(text, 0, &filter, &err) < 0)
		assert(cordon_text_safe(err.message, strlen(err.message)));
	if (cordon_audit_kinds_parse(text, &filter, &err) == 0)
		assert(filter.types != 0);
	if (cordon_audit_run_parse(text, &filter, &err) == 0)
		assert(cordon_streq(filter.run, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	check_lines(text, size);
	check_render(text, strlen(text));
	check_options(text);
	return 0;
}
