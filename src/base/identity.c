/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of files and directories: asked of the kernel, compared, and written as text. */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/identity.h"

/* A handle with room for the largest one. */
union handle {
	struct file_handle head;
	unsigned char room[sizeof(struct file_handle) + CORDON_HANDLE_MAX];
};

/* A file system without handles gives none, and so does a filter that refuses to ask. */
static void ask_handle(int fd, struct cordon_identity *identity)
{
	union handle handle = { .head.handle_bytes = CORDON_HANDLE_MAX };
	int mount_id;

	if (name_to_handle_at(fd, "", &handle.head, &mount_id, AT_EMPTY_PATH) < 0 ||
	    handle.head.handle_bytes > CORDON_HANDLE_MAX)
		return;
	identity->handle_type = handle.head.handle_type;
	identity->handle_len = handle.head.handle_bytes;
	memcpy(identity->handle, handle.room + sizeof(handle.head), handle.head.handle_bytes);
}

int cordon_identity_of(int fd, struct cordon_identity *ret_identity)
{
	struct cordon_identity identity = { 0 };
	struct statx st = { 0 };
	struct statfs fs;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_SYNC_AS_STAT, STATX_INO | STATX_BTIME, &st) < 0 ||
	    fstatfs(fd, &fs) < 0)
		return -errno;
	memcpy(&identity.fsid, &fs.f_fsid, sizeof(identity.fsid));
	identity.ino = st.stx_ino;
	if (st.stx_mask & STATX_BTIME) {
		identity.born_s = st.stx_btime.tv_sec;
		identity.born_ns = st.stx_btime.tv_nsec;
	}
	/* A FUSE server numbers what it was asked about, and begins anew whenever the kernel has forgotten an inode. */
	if ((unsigned long)fs.f_type != FUSE_SUPER_MAGIC)
		ask_handle(fd, &identity);
	*ret_identity = identity;
	return 0;
}

bool cordon_identity_same(const struct cordon_identity *a, const struct cordon_identity *b)
{
	if (a->fsid != b->fsid)
		return false;
	if (a->handle_len && b->handle_len)
		return a->handle_type == b->handle_type && a->handle_len == b->handle_len &&
		       memcmp(a->handle, b->handle, a->handle_len) == 0;
	return a->ino == b->ino && a->born_s == b->born_s && a->born_ns == b->born_ns;
}

void cordon_identity_text(const struct cordon_identity *identity, char ret[static CORDON_IDENTITY_SIZE])
{
	size_t n = (size_t)snprintf(ret, CORDON_IDENTITY_SIZE, "%016jx %ju %jd %u %d ", (uintmax_t)identity->fsid,
				    (uintmax_t)identity->ino, (intmax_t)identity->born_s, identity->born_ns,
				    identity->handle_type);

	for (unsigned int i = 0; i < identity->handle_len; i++)
		n += (size_t)snprintf(ret + n, CORDON_IDENTITY_SIZE - n, "%02x", identity->handle[i]);
	if (!identity->handle_len)
		snprintf(ret + n, CORDON_IDENTITY_SIZE - n, "-");
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_handle(const char *text, struct cordon_identity *identity)
{
	size_t n = strlen(text);

	if (cordon_streq(text, "-"))
		return 0;
	if (!n || n % 2 || n / 2 > CORDON_HANDLE_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		identity->handle[i / 2] = (unsigned char)(high << 4 | low);
	}
	identity->handle_len = (unsigned int)(n / 2);
	return 0;
}

int cordon_identity_parse(const char *text, struct cordon_identity *ret_identity)
{
	struct cordon_identity identity = { 0 };
	char written[CORDON_IDENTITY_SIZE];
	uintmax_t fsid, ino;
	intmax_t born_s;
	int at = 0;

	/* NOLINTNEXTLINE(cert-err34-c): a number that does not fit is found below. */
	if (sscanf(text, "%jx %ju %jd %u %d %n", &fsid, &ino, &born_s, &identity.born_ns, &identity.handle_type, &at) !=
		    5 ||
	    !at || parse_handle(text + at, &identity) < 0)
		return -EINVAL;
	identity.fsid = fsid;
	identity.ino = ino;
	identity.born_s = born_s;
	/* What we would write otherwise was not written by us. */
	cordon_identity_text(&identity, written);
	if (!cordon_streq(written, text))
		return -EINVAL;
	*ret_identity = identity;
	return 0;
}

bool cordon_same_object(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
