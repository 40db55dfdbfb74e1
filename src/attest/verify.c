/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies an attestation: who signed it, whether it is about what it was found at, and whether all that is as the run left it. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "attest/attest.h"
#include "audit/verify.h"
#include "base/digest.h"
#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"

#define SENTENCE_MAX ((size_t)2 * CORDON_PATH_MAX)
#define FAILURES_MAX 100

CORDON_PRINTF(2, 3)
static void fail(struct cordon_attest_answer *answer, const char *fmt, ...)
{
	char text[SENTENCE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (json_array_size(answer->failures) < FAILURES_MAX)
		json_array_append_new(answer->failures, cordon_audit_text(text));
}

void cordon_attest_answer_done(struct cordon_attest_answer *answer)
{
	json_decref(answer->failures);
	json_decref(answer->statement);
	free(answer->signer);
	*answer = (struct cordon_attest_answer){ 0 };
}

static void judge_policy(struct cordon_attest_answer *answer, const json_t *predicate)
{
	const json_t *policy = json_object_get(predicate, "policy"), *subject = NULL;
	const char *said = cordon_json_text(json_object_get(policy, "digest"), "sha256");
	char hex[CORDON_DIGEST_SIZE];

	cordon_attest_policy_digest(json_object_get(policy, "lines"), hex);
	subject = json_array_get(json_object_get(answer->statement, "subject"), 0);
	if (!cordon_streq(said, hex) || !cordon_json_is(json_object_get(subject, "digest"), "sha256", hex))
		fail(answer, "policy: its lines have another digest than the statement says");
}

static void judge_commit(struct cordon_attest_answer *answer, const char *commit)
{
	const json_t *subjects = json_object_get(answer->statement, "subject"), *subject;
	size_t i;

	json_array_foreach(subjects, i, subject)
		if (cordon_json_is(json_object_get(subject, "digest"), "gitCommit", commit))
			return;
	fail(answer, "commit: %s is not among the commits of this run", commit);
}

/* The bytes that a text of cordon_text_escape() stands for. */
static int unescape(struct cordon_buf *ret, const char *s)
{
	static const char letters[] = "ntre\\", bytes[] = "\n\t\r\033\\";
	int r = 0;

	for (; r == 0 && *s; s++) {
		const char *letter = *s == '\\' && s[1] ? strchr(letters, s[1]) : NULL;
		unsigned int value;
		int used = 0;

		if (*s != '\\') {
			r = cordon_buf_addc(ret, *s);
		} else if (letter) {
			r = cordon_buf_addc(ret, bytes[letter - letters]);
			s++;
		} else if (sscanf(s, "\\x%2x%n", &value, &used) == 1 && used == 4 && value) {
			r = cordon_buf_addc(ret, (char)value);
			s += used - 1;
		} else if (sscanf(s, "\\u{%6x}%n", &value, &used) == 1 && used && value >= 0x80 && value < 0x110000) {
			char utf8[4];
			size_t n = value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;

			for (size_t i = n; --i > 0; value >>= 6)
				utf8[i] = (char)(0x80 | (value & 0x3f));
			utf8[0] = (char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | value);
			r = cordon_buf_add(ret, utf8, n);
			s += used - 1;
		} else {
			return -EINVAL;
		}
	}
	return r;
}

/* The digest of what is at a path now; an empty one when it is neither a file nor a link that can be read. */
static void digest_now(const struct cordon_root *root, const char *path, bool link,
		       char ret_hex[static CORDON_DIGEST_SIZE])
{
	int flags = link ? O_PATH | O_NOFOLLOW | O_CLOEXEC : O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	autofd int fd = cordon_open_beneath(root->fd, path, flags);
	uint64_t max = UINT64_MAX;
	char target[CORDON_PATH_MAX];
	struct stat st;
	ssize_t n;

	ret_hex[0] = '\0';
	if (fd < 0 || fstat(fd, &st) < 0 || !(link ? S_ISLNK(st.st_mode) : S_ISREG(st.st_mode)))
		return;
	if (!link) {
		(void)cordon_digest_fd(fd, &max, ret_hex);
		return;
	}
	n = readlinkat(fd, "", target, sizeof(target));
	if (n >= 0)
		cordon_digest(target, (size_t)n, ret_hex);
}

static void judge_files(struct cordon_attest_answer *answer, const json_t *predicate, const struct cordon_root *root)
{
	const json_t *subjects = json_object_get(answer->statement, "subject"), *subject;
	const json_t *deleted = json_object_get(json_object_get(predicate, "files"), "deleted"), *path;
	size_t i;

	json_array_foreach(subjects, i, subject) {
		const char *said = cordon_json_string(json_object_get(subject, "digest"), "sha256");
		bool link = cordon_json_is(json_object_get(subject, "annotations"), "type", "link");
		autobuf struct cordon_buf raw = CORDON_BUF(CORDON_PATH_MAX);
		char hex[CORDON_DIGEST_SIZE];

		/* The first one is the policy. */
		if (i == 0 || !said || unescape(&raw, cordon_json_text(subject, "name")) < 0 || !raw.len)
			continue;
		digest_now(root, raw.data, link, hex);
		if (!cordon_streq(hex, said))
			fail(answer, "file: %s is %s", cordon_json_text(subject, "name"),
			     *hex ? "not as the run left it" : "not there, or can't be read");
	}
	json_array_foreach(deleted, i, path) {
		autobuf struct cordon_buf raw = CORDON_BUF(CORDON_PATH_MAX);
		autofd int fd = -1;

		if (!json_is_string(path) || unescape(&raw, json_string_value(path)) < 0 || !raw.len)
			continue;
		fd = cordon_open_beneath(root->fd, raw.data, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			fail(answer, "file: %s is there, and the run removed it", json_string_value(path));
	}
}

static int judge_chain(struct cordon_attest_answer *answer, const json_t *predicate, const struct cordon_home *home,
		       struct cordon_error *err)
{
	const json_t *head = json_object_get(predicate, "audit");
	json_int_t seq = cordon_json_integer(head, "seq");
	struct cordon_audit_part part = { .seq = seq > 0 ? (uint64_t)seq : 0 };
	struct cordon_audit_report report = { 0 };
	int r = cordon_audit_verify(home, &part, &report, err);

	if (r < 0)
		return r;
	if (report.breaks)
		fail(answer, "chain: the audit log is broken at %s:%llu: %s", report.first_break.file,
		     (unsigned long long)report.first_break.line, report.first_break.reason);
	if (!*report.seq_hash)
		fail(answer, "chain: the audit log of this machine has no record %lld", (long long)seq);
	else if (!cordon_json_is(head, "hash", report.seq_hash))
		fail(answer, "chain: record %lld of the audit log is another one than when the run ended",
		     (long long)seq);
	return 0;
}

/* Reads what was signed. */
static bool parse(struct cordon_attest_answer *answer, const char *text, size_t n)
{
	json_error_t where;

	answer->statement = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
	if (!answer->statement)
		fail(answer, "statement: it is no JSON: %s", where.text);
	else if (!cordon_json_is(answer->statement, "_type", CORDON_ATTEST_TYPE) ||
		 !cordon_json_is(answer->statement, "predicateType", CORDON_ATTEST_PREDICATE) ||
		 !json_is_object(json_object_get(answer->statement, "predicate")))
		fail(answer, "statement: it is not one about a run of cordon");
	else
		return true;
	return false;
}

static int judge(const struct cordon_attest_question *ask, const char *text, size_t n,
		 struct cordon_attest_answer *answer, struct cordon_error *err)
{
	const char *end = n && n <= CORDON_ATTEST_MAX ? memchr(text, '\n', n) : NULL;
	size_t line = end ? (size_t)(end - text) + 1 : 0;
	autobuf struct cordon_buf who = CORDON_BUF(1024);
	struct cordon_error why = { 0 };
	const json_t *predicate;
	int r;

	if (!line || !cordon_attest_armored(text + line, n - line)) {
		fail(answer, "signature: there is none behind the statement, or it was changed");
		return 0;
	}
	r = cordon_attest_judge(ask->root, ask->signers, text, line, text + line, n - line, &who, &why);
	if (r == -EBADMSG) {
		fail(answer, "signature: %s", why.message);
		return 0;
	}
	if (r < 0) {
		*err = why;
		return r;
	}
	answer->signer = cordon_buf_steal(&who);
	if (!parse(answer, text, line))
		return 0;
	predicate = json_object_get(answer->statement, "predicate");
	answer->refusals = (size_t)(cordon_json_integer(json_object_get(predicate, "refusals"), "count") +
				    cordon_json_integer(json_object_get(predicate, "git"), "refused"));
	judge_policy(answer, predicate);
	if (ask->commit)
		judge_commit(answer, ask->commit);
	if (ask->files)
		judge_files(answer, predicate, ask->files);
	return ask->home ? judge_chain(answer, predicate, ask->home, err) : 0;
}

int cordon_attest_verify(const struct cordon_attest_question *ask, const char *text, size_t n,
			 struct cordon_attest_answer *ret_answer, struct cordon_error *err)
{
	struct cordon_attest_answer answer = { .failures = json_array() };
	struct cordon_error own = { 0 };
	int r = answer.failures ? judge(ask, text, n, &answer, err ? err : &own) : -ENOMEM;

	if (r < 0) {
		cordon_attest_answer_done(&answer);
		return r;
	}
	*ret_answer = answer;
	return 0;
}
