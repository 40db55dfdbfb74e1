/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's process and the hand restrict themselves with Landlock, by its bare system calls. The constants up to ABI
 * 7 are here, because linux-libc-dev 6.1 ends at ABI 2. */
#include <stdint.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "sandbox/inside/landlock.h"

#define CREATE_RULESET_VERSION 1U
#define RULE_PATH_BENEATH 1

#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ_FILE (1ULL << 2)
#define FS_READ_DIR (1ULL << 3)
#define FS_REMOVE_DIR (1ULL << 4)
#define FS_REMOVE_FILE (1ULL << 5)
#define FS_MAKE_CHAR (1ULL << 6)
#define FS_MAKE_DIR (1ULL << 7)
#define FS_MAKE_REG (1ULL << 8)
#define FS_MAKE_SOCK (1ULL << 9)
#define FS_MAKE_FIFO (1ULL << 10)
#define FS_MAKE_BLOCK (1ULL << 11)
#define FS_MAKE_SYM (1ULL << 12)
#define FS_REFER (1ULL << 13)	  /* ABI 2; without it no rename or link crosses directories */
#define FS_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */

#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ULL << 1)

#define LOG_SAME_EXEC_OFF (1U << 0) /* ABI 7 */
#define LOG_SUBDOMAINS_OFF (1U << 2)

/* The rights that something other than a directory can have; the kernel refuses any other right there with EINVAL. */
#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

#define FS_READ (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
/* No MAKE_CHAR and no MAKE_BLOCK: an agent needs no devices, not even a whiteout, which is the only device that anybody
 * may make. */
#define FS_MAKE (FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER)
#define FS_WRITE (FS_READ | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE | FS_TRUNCATE)
/* What a held directory withholds. */
#define FS_SECOND (FS_MAKE | FS_WRITE_FILE | FS_TRUNCATE | FS_REMOVE_DIR | FS_REMOVE_FILE)

struct ruleset_attr {
	uint64_t handled_fs;
	uint64_t handled_net; /* ABI 4 */
	uint64_t scoped;      /* ABI 6 */
};

struct path_beneath_attr {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

static const uint64_t class_rights[CORDON_LANDLOCK__MAX] = {
	[CORDON_LANDLOCK_LIST] = FS_READ_DIR,
	[CORDON_LANDLOCK_TRIP] = FS_READ_FILE | FS_READ_DIR,
	[CORDON_LANDLOCK_READ] = FS_READ,
	[CORDON_LANDLOCK_WRITE] = FS_WRITE,
	[CORDON_LANDLOCK_MAKE] = FS_SECOND,
	[CORDON_LANDLOCK_MAKE_NO_LINKS] = (FS_SECOND & ~FS_MAKE_SYM) | FS_MAKE_BLOCK,
	[CORDON_LANDLOCK_WRITE_FILES] = FS_WRITE_FILE | FS_TRUNCATE,
	[CORDON_LANDLOCK_NODE] = FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
	[CORDON_LANDLOCK_DEVICE] = FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
};

static uint64_t handled_by(unsigned int abi)
{
	uint64_t rights = (FS_MAKE_SYM << 1) - 1;

	if (abi >= 2)
		rights |= FS_REFER;
	if (abi >= 3)
		rights |= FS_TRUNCATE;
	if (abi >= 5)
		rights |= FS_IOCTL_DEV;
	return rights;
}

unsigned int cordon_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	if (abi <= 0)
		return 0; /* ENOSYS: the kernel lacks it, or a filter refuses it; EOPNOTSUPP: switched off at boot */
	return abi > CORDON_LANDLOCK_ABI_KNOWN ? CORDON_LANDLOCK_ABI_KNOWN : (unsigned int)abi;
}

static int begin(unsigned int abi, uint64_t handled)
{
	struct ruleset_attr attr = {
		.handled_fs = handled & handled_by(abi),
		.scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0,
	};
	long fd;

	if (abi == 0)
		return -EOPNOTSUPP;
	/* Older kernels accept a longer structure when the part that they do not know is zero. */
	fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	return fd < 0 ? -errno : (int)fd;
}

int cordon_landlock_begin(unsigned int abi)
{
	return begin(abi, ~0ULL);
}

int cordon_landlock_begin_second(unsigned int abi)
{
	/* The kernel moves a directory only to where it gets no right that it had not. The first layer gives nobody the right to
	 * make a device, so this one can use it as a mark. */
	return begin(abi, FS_SECOND | FS_MAKE_BLOCK);
}

int cordon_landlock_allow(int ruleset_fd, unsigned int abi, int path_fd, enum cordon_landlock_class rights)
{
	struct path_beneath_attr attr = { .allowed = class_rights[rights] & handled_by(abi), .parent_fd = path_fd };
	struct stat st;

	if (syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &attr, 0) == 0)
		return 0;
	/* Nearly all paths are directories, so we ask for the type only when the call fails. */
	if (errno != EINVAL || fstat(path_fd, &st) < 0 || S_ISDIR(st.st_mode))
		return -errno;
	attr.allowed &= FS_OF_FILES;
	if (attr.allowed == 0)
		return 0; /* LIST on a file grants nothing, and the kernel refuses an empty rule with ENOMSG */
	return syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &attr, 0) < 0 ? -errno : 0;
}

int cordon_landlock_enforce(int ruleset_fd, unsigned int abi)
{
	unsigned int flags = abi >= 7 ? LOG_SAME_EXEC_OFF | LOG_SUBDOMAINS_OFF : 0;

	return syscall(SYS_landlock_restrict_self, ruleset_fd, flags) < 0 ? -errno : 0;
}
