/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports to the supervisor what cordon-lens refused (sandbox/host/lens_record.h has the rules of the socket).
 *
 * The answer to a refused request waits here until the supervisor has seen the record. A look-up waits because the
 * supervisor finds out in /proc what the process wanted, and the process goes on when it has the answer. Other
 * requests wait so that the refusal is reported before anything that the process does next. No answer waits longer
 * than REFUSAL_MS, and none waits when the table is full.
 */
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>

#include "lens/lens.h"
#include "sandbox/host/lens_record.h"

#define REFUSAL_MS 250

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool send_record(const struct lens *lens, const struct cordon_lens_record *record)
{
	size_t size = offsetof(struct cordon_lens_record, texts);

	if (record->path_at)
		size += record->path_at + strlen(record->texts + record->path_at) + 1;
	return send(lens->refusals_fd, record, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

void lens_report_missed(struct lens *lens)
{
	struct cordon_lens_record record = { .kind = CORDON_LENS_DROPPED, .count = lens->missed };

	if (lens->refusals_fd >= 0 && lens->missed && send_record(lens, &record))
		lens->missed = 0;
}

/* False when the name or the path is too long for a record. */
static bool fill(struct cordon_lens_record *record, const char *name, const char *path)
{
	size_t n = strlen(name), m = strlen(path);

	if (n > NAME_MAX || m >= CORDON_PATH_MAX)
		return false;
	memcpy(record->texts, name, n + 1);
	memcpy(record->texts + n + 1, path, m + 1);
	record->path_at = (uint32_t)n + 1;
	return true;
}

static void report(struct lens *lens, enum cordon_lens_record_kind kind, enum cordon_lens_op op, const char *name,
		   const char *path)
{
	CORDON_UNCLEARED struct cordon_lens_record record;

	if (lens->refusals_fd < 0)
		return;
	lens_report_missed(lens);
	memset(&record, 0, offsetof(struct cordon_lens_record, texts));
	record.kind = kind;
	record.op = op;
	record.exists = true;
	record.number = lens->last_record + 1;
	if (lens->n_refusals == LENS_REFUSALS_MAX || !fill(&record, name, path) || !send_record(lens, &record)) {
		lens->missed++;
		return;
	}
	lens->reported = ++lens->last_record;
}

void lens_report_change(struct lens *lens, enum cordon_lens_op op, const char *path)
{
	if (lens->meter)
		cordon_meter_count(&lens->meter->lens_denied);
	report(lens, CORDON_LENS_REFUSED, op, "", path);
}

int lens_report_beside(struct lens *lens, enum cordon_lens_op op, const char *path, const char *boundary)
{
	if (lens->meter)
		cordon_meter_count(&lens->meter->lens_denied);
	report(lens, CORDON_LENS_BESIDE, op, boundary ? boundary : "", path);
	return -EACCES;
}

void lens_report_too_large(struct lens *lens, const char *path)
{
	report(lens, CORDON_LENS_TOO_LARGE, CORDON_LENS_OP_RENAME, "", path);
}

/* Delays an answer until the supervisor has seen the record with that number. */
static void delay(struct lens *lens, fuse_req_t req, uint64_t number, int error)
{
	lens->refusals[lens->n_refusals++] = (struct lens_refusal){
		.req = req, .number = number, .until = now_ms() + REFUSAL_MS, .error = error
	};
	lens_delayed_wait(lens);
}

void lens_reply_err(fuse_req_t req, int error)
{
	struct lens *lens = fuse_req_userdata(req);
	uint64_t number = lens->reported;

	lens->reported = 0;
	if (number && error)
		delay(lens, req, number, error);
	else
		fuse_reply_err(req, error);
}

bool lens_report_lookup(fuse_req_t req, const char *name, const char *path, bool exists)
{
	struct lens *lens = fuse_req_userdata(req);
	CORDON_UNCLEARED struct cordon_lens_record record;
	pid_t thread = fuse_req_ctx(req)->pid;

	/* A process without a number in the sandbox is the supervisor itself, which resolves a path. */
	if (lens->refusals_fd < 0 || thread <= 0)
		return false;
	if (lens->meter)
		cordon_meter_count(&lens->meter->lens_denied);
	lens_report_missed(lens);
	memset(&record, 0, offsetof(struct cordon_lens_record, texts));
	record.kind = CORDON_LENS_ASKED;
	record.thread = (uint32_t)thread;
	record.number = lens->last_record + 1;
	record.exists = exists;
	if (lens->n_refusals == LENS_REFUSALS_MAX || !fill(&record, name, path) || !send_record(lens, &record)) {
		/* A process that asks for a missing name most probably only checks whether it exists. */
		lens->missed += exists;
		return false;
	}
	delay(lens, req, ++lens->last_record, EACCES);
	return true;
}

int lens_refusals_ms(const struct lens *lens)
{
	int64_t left;

	if (!lens->n_refusals)
		return -1;
	left = lens->refusals[0].until - now_ms();
	return left < 0 ? 0 : (int)left;
}

void lens_refusals_serve(struct lens *lens)
{
	uint64_t number, seen = 0;
	int64_t now;
	size_t due = 0;
	ssize_t n;

	if (!lens->n_refusals)
		return;
	while ((n = recv(lens->refusals_fd, &number, sizeof(number), MSG_DONTWAIT)) == (ssize_t)sizeof(number))
		seen = number;
	/* The supervisor is gone, and the lens will end. */
	if (n == 0)
		seen = lens->last_record;
	now = now_ms();
	/* Requests are answered in the order in which they came. */
	for (; due < lens->n_refusals && (lens->refusals[due].number <= seen || lens->refusals[due].until <= now); due++)
		fuse_reply_err(lens->refusals[due].req, lens->refusals[due].error);
	lens->n_refusals -= due;
	memmove(lens->refusals, lens->refusals + due, lens->n_refusals * sizeof(*lens->refusals));
}
