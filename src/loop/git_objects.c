/* SPDX-License-Identifier: Apache-2.0 */
/* Reads objects through one git that stays, and writes new ones. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/io.h"
#include "loop/git.h"
#include "loop/git_objects.h"
#include "loop/internal.h"
#include "view/sha1.h"

#define ANSWER_MS 300000
#define LINE_MAX_BYTES 256
#define STORED_MAX 65535 /* bytes of one block */

/* ---- reading ---- */

static int start(struct cordon_loop *loop, struct cordon_error *err)
{
	static const char *const argv[] = { "cat-file", "--batch", NULL };
	struct cordon_git_call call = {
		.repo = &loop->git.repo, .git_dir = loop->git.shim, .argv = argv, .held = loop->git.running_fd
	};

	return loop->git.reader.fd >= 0 ? 0 : cordon_git_start(&call, &loop->git.reader, err);
}

static int ask(int fd, const char *name)
{
	char line[LINE_MAX_BYTES];
	int n = snprintf(line, sizeof(line), "%s\n", name);

	for (int sent = 0; sent < n;) {
		ssize_t now = send(fd, line + sent, (size_t)(n - sent), MSG_NOSIGNAL);

		if (now < 0 && errno != EINTR)
			return -errno;
		sent += now > 0 ? (int)now : 0;
	}
	return 0;
}

/* At least one byte, and at most n. */
static ssize_t receive(int fd, char *to, size_t n, int flags)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	ssize_t got = -1;

	do {
		int r = poll(&wait, 1, ANSWER_MS);

		if (r == 0)
			return -ETIME;
		if (r > 0)
			got = recv(fd, to, n, flags);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got == 0 ? -EPIPE : got;
}

static int receive_all(int fd, char *to, size_t n)
{
	while (n) {
		ssize_t got = receive(fd, to, n, 0);

		if (got < 0)
			return (int)got;
		to += got;
		n -= (size_t)got;
	}
	return 0;
}

/* Takes no more than the line: what comes after it belongs to the object. */
static int receive_line(int fd, char line[static LINE_MAX_BYTES])
{
	for (size_t n = 0; n < LINE_MAX_BYTES;) {
		ssize_t got = receive(fd, line + n, LINE_MAX_BYTES - n, MSG_PEEK);
		char *end = got < 0 ? NULL : memchr(line + n, '\n', (size_t)got);
		int r = got < 0 ? (int)got
				: receive_all(fd, line + n, end ? (size_t)(end + 1 - (line + n)) : (size_t)got);

		if (r < 0)
			return r;
		if (end) {
			*end = '\0';
			return 0;
		}
		n += (size_t)got;
	}
	return -EBADMSG;
}

/* "ID TYPE SIZE", or "NAME missing". */
static int parse_line(char *line, const char *type, size_t max, char ret_id[CORDON_GIT_ID_SIZE], size_t *ret_size)
{
	char *kind = strchr(line, ' '), *size = kind ? strchr(kind + 1, ' ') : NULL, *end;
	unsigned long long n;

	if (kind && !size && cordon_streq(kind + 1, "missing"))
		return -ENOENT;
	if (!size)
		return -EBADMSG;
	*kind++ = '\0';
	*size++ = '\0';
	n = strtoull(size, &end, 10);
	if (*end || end == size || !cordon_git_id_valid(line, strlen(line)) || !cordon_streq(kind, type))
		return -EBADMSG;
	if (n > max)
		return -E2BIG;
	*ret_size = n;
	if (ret_id)
		memcpy(ret_id, line, strlen(line) + 1);
	return 0;
}

static int converse(int fd, const char *name, const char *type, size_t max, char ret_id[CORDON_GIT_ID_SIZE],
		    struct cordon_buf *ret_content)
{
	char line[LINE_MAX_BYTES], newline = '\0', *room;
	size_t n = 0;
	int r = ask(fd, name);

	if (r == 0)
		r = receive_line(fd, line);
	if (r == 0)
		r = parse_line(line, type, max, ret_id, &n);
	if (r < 0)
		return r;
	ret_content->max = max;
	room = cordon_buf_room(ret_content, n);
	if (!room)
		return -ENOMEM;
	r = receive_all(fd, room, n);
	if (r == 0)
		r = receive_all(fd, &newline, 1);
	if (r < 0)
		return r;
	ret_content->len += n;
	room[n] = '\0';
	return newline == '\n' ? 0 : -EBADMSG;
}

int cordon_loop_object_read(struct cordon_loop *loop, const char *name, const char *type, size_t max,
			    char ret_id[CORDON_GIT_ID_SIZE], struct cordon_buf *ret_content, struct cordon_error *err)
{
	int r = start(loop, err);

	if (r < 0)
		return r;
	r = converse(loop->git.reader.fd, name, type, max, ret_id, ret_content);
	/* After any other fault nobody knows where its next answer begins. */
	if (r < 0 && r != -ENOENT)
		cordon_git_stop(&loop->git.reader);
	return r < 0 ? cordon_fail_errno(err, r, "git cat-file: cannot read %s", name) : 0;
}

/* ---- writing ---- */

static uint32_t adler32(const unsigned char *bytes, size_t n)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < n;) {
		size_t end = n - i < 5552 ? n : i + 5552; /* so many sums fit */

		for (; i < end; i++) {
			a += bytes[i];
			b += a;
		}
		a %= 65521;
		b %= 65521;
	}
	return b << 16 | a;
}

/* A zlib stream of blocks that are stored as they are (RFC 1950 and 1951). `git gc` packs objects more tightly. */
static int add_stored(struct cordon_buf *out, const struct cordon_buf *raw)
{
	uint32_t sum = adler32((const unsigned char *)raw->data, raw->len);
	int r = cordon_buf_add(out, "\x78\x01", 2);

	for (size_t at = 0; r == 0 && at < raw->len;) {
		size_t n = raw->len - at < STORED_MAX ? raw->len - at : STORED_MAX;
		unsigned char head[] = { at + n == raw->len, n & 255, (unsigned char)(n >> 8), ~n & 255,
					 (unsigned char)(~n >> 8 & 255) };

		r = cordon_buf_add(out, head, sizeof(head));
		if (r == 0)
			r = cordon_buf_add(out, raw->data + at, n);
		at += n;
	}
	for (int shift = 24; r == 0 && shift >= 0; shift -= 8)
		r = cordon_buf_addc(out, (char)(sum >> shift & 255));
	return r;
}

/* 1 when the repository has the same object; a fault when it has another one of that name. */
static int is_there(struct cordon_loop *loop, const char *id, const char *type, const void *content, size_t n,
		    struct cordon_error *err)
{
	autobuf struct cordon_buf old = { 0 };
	struct cordon_error why = { 0 };
	int r = cordon_loop_object_read(loop, id, type, n, NULL, &old, &why);

	if (r == -ENOENT)
		return 0;
	if (r == -E2BIG || r == -EBADMSG || (r == 0 && (old.len != n || (n && memcmp(old.data, content, n) != 0))))
		return cordon_fail(err, -EBADMSG, CORDON_KIND_CONFLICT, "another object has the name %s", id);
	if (r < 0 && err)
		*err = why;
	return r < 0 ? r : 1;
}

/* Whoever made the directory may have left links in it. */
static int put(int objects_fd, const char *id, const struct cordon_buf *stream, struct cordon_error *err)
{
	char name[3] = { id[0], id[1], '\0' };
	autofd int dir = -1;
	struct stat st;

	if ((mkdirat(objects_fd, name, 0777) < 0 && errno != EEXIST) ||
	    (dir = openat(objects_fd, name, CORDON_LOOP_OPEN_DIR)) < 0 || fstat(dir, &st) < 0)
		return cordon_fail_errno(err, -errno, "cannot write to the objects of the repository");
	/* Whoever can't look into the directory has no business with the file either. */
	return cordon_write_file_unsynced(dir, id + 2, st.st_mode & 0444, stream->data, stream->len, err);
}

/* Git removes what nobody refers to when it is old: this is not old any more. */
static void freshen(int objects_fd, const char *id)
{
	char name[3] = { id[0], id[1], '\0' };
	autofd int dir = openat(objects_fd, name, CORDON_LOOP_OPEN_DIR);

	if (dir >= 0)
		(void)utimensat(dir, id + 2, NULL, AT_SYMLINK_NOFOLLOW);
}

int cordon_loop_object_write(struct cordon_loop *loop, int objects_fd, const char *type, const void *content, size_t n,
			     char ret_id[static CORDON_GIT_ID_SIZE], struct cordon_error *err)
{
	autobuf struct cordon_buf raw = CORDON_BUF(n + 64), stream = CORDON_BUF(n + n / 1000 + 256);
	int r = cordon_buf_addf(&raw, "%s %zu", type, n);

	if (r == 0)
		r = cordon_buf_addc(&raw, '\0');
	if (r == 0 && n)
		r = cordon_buf_add(&raw, content, n);
	if (r < 0)
		return cordon_fail_errno(err, r, "the commit");
	if (loop->git.sha256)
		cordon_digest(raw.data, raw.len, ret_id);
	else
		cordon_sha1(raw.data, raw.len, ret_id);
	r = is_there(loop, ret_id, type, content, n, err);
	if (r > 0)
		freshen(objects_fd, ret_id);
	if (r != 0)
		return r < 0 ? r : 0;
	r = add_stored(&stream, &raw);
	return r < 0 ? cordon_fail_errno(err, r, "the commit") : put(objects_fd, ret_id, &stream, err);
}
