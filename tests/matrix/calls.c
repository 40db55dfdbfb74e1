/* SPDX-License-Identifier: Apache-2.0 */
/* Every system call that takes a path or changes a file, with its flags: the first table of the matrix. */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "matrix.h"

/* Numbers that are younger than the headers. */
enum {
	NR_cachestat = 451,
	NR_fchmodat2 = 452,
	NR_setxattrat = 463,
	NR_getxattrat = 464,
	NR_listxattrat = 465,
	NR_removexattrat = 466,
	NR_open_tree_attr = 467,
	NR_file_getattr = 468,
	NR_file_setattr = 469,
};

#define MAX_CALLS 1024

/* The letters of `args`, one for each argument:
 * d p   descriptor and path of the spelling        P     its path, for a call that takes no descriptor
 * R Q   the target, opened for reading, by O_PATH   D     AT_FDCWD
 * o O l own file, directory, link; t a free name    F h   a file without a name, its magic link;  f own file, opened
 * a b   the numbers of the row                      0 1 m zero, one, minus one
 * e x   empty text, text of a link                  v z   a buffer and its size
 * n N u attribute to set, to read; its value        T U Y times in three forms
 * S k K a new socket, an address and its size       X E   arguments and environment
 * H A G structures of openat2, *xattrat, file_*attr;  s their size follows */
/* clang-format off */
#define CORE true
#define MORE false
static const struct call rows[] = {
	{"creat",                        SYS_creat,         "Pa",     0666, 0, 0, 'w', CORE},
	{"mkdir",                        SYS_mkdir,         "Pa",     0755, 0, 0, ' ', CORE},
	{"mkdirat",                      SYS_mkdirat,       "dpa",    0755, 0, 0, ' ', CORE},
	{"mknod(file)",                  SYS_mknod,         "Pa0",    S_IFREG | 0644, 0, 0, ' ', CORE},
	{"mknod(FIFO)",                  SYS_mknod,         "Pa0",    S_IFIFO | 0644, 0, 0, ' ', CORE},
	{"mknod(socket)",                SYS_mknod,         "Pa0",    S_IFSOCK | 0644, 0, 0, ' ', MORE},
	{"mknod(whiteout)",              SYS_mknod,         "Pa0",    S_IFCHR | 0644, 0, 0, ' ', MORE},
	{"mknodat(file)",                SYS_mknodat,       "dpa0",   S_IFREG | 0644, 0, 0, ' ', CORE},
	{"mknodat(FIFO)",                SYS_mknodat,       "dpa0",   S_IFIFO | 0644, 0, 0, ' ', MORE},
	{"mknodat(socket)",              SYS_mknodat,       "dpa0",   S_IFSOCK | 0644, 0, 0, ' ', MORE},
	{"mknodat(device)",              SYS_mknodat,       "dpab",   S_IFCHR | 0644, 0x103, 0, ' ', MORE},
	{"symlink",                      SYS_symlink,       "xP",     0, 0, 0, ' ', CORE},
	{"symlinkat",                    SYS_symlinkat,     "xdp",    0, 0, 0, ' ', CORE},
	{"link(to it)",                  SYS_link,          "oP",     0, 0, 0, ' ', CORE},
	{"link(from it)",                SYS_link,          "Pt",     0, 0, 0, 't', CORE},
	{"linkat(to it)",                SYS_linkat,        "Dodp0",  0, 0, 0, ' ', CORE},
	{"linkat(to it, from a link)",   SYS_linkat,        "Dldp0",  0, 0, 0, ' ', MORE},
	{"linkat(to it, FOLLOW)",        SYS_linkat,        "Dldpa",  AT_SYMLINK_FOLLOW, 0, 0, ' ', MORE},
	{"linkat(to it, O_TMPFILE by EMPTY_PATH)", SYS_linkat, "Fedpa", AT_EMPTY_PATH, 0, 0, ' ', CORE},
	{"linkat(to it, O_TMPFILE by magic link)", SYS_linkat, "Dhdpa", AT_SYMLINK_FOLLOW, 0, 0, ' ', CORE},
	{"linkat(from it)",              SYS_linkat,        "dpDt0",  0, 0, 0, 't', CORE},
	{"linkat(from it, FOLLOW)",      SYS_linkat,        "dpDta",  AT_SYMLINK_FOLLOW, 0, 0, 't', MORE},
	{"linkat(from it, EMPTY_PATH)",  SYS_linkat,        "QeDta",  AT_EMPTY_PATH, 0, 0, 't', CORE},
	{"linkat(from it opened, EMPTY_PATH)", SYS_linkat,  "ReDta",  AT_EMPTY_PATH, 0, 0, 't', MORE},
	{"rename(file to it)",           SYS_rename,        "oP",     0, 0, 0, ' ', CORE},
	{"rename(directory to it)",      SYS_rename,        "OP",     0, 0, 0, ' ', CORE},
	{"rename(link to it)",           SYS_rename,        "lP",     0, 0, 0, ' ', MORE},
	{"rename(from it)",              SYS_rename,        "Pt",     0, 0, 0, 't', CORE},
	{"renameat(to it)",              SYS_renameat,      "Dodp",   0, 0, 0, ' ', CORE},
	{"renameat(from it)",            SYS_renameat,      "dpDt",   0, 0, 0, 't', CORE},
	{"renameat2(file to it)",        SYS_renameat2,     "Dodp0",  0, 0, 0, ' ', CORE},
	{"renameat2(directory to it)",   SYS_renameat2,     "DOdp0",  0, 0, 0, ' ', MORE},
	{"renameat2(to it, NOREPLACE)",  SYS_renameat2,     "Dodpa",  RENAME_NOREPLACE, 0, 0, ' ', CORE},
	{"renameat2(link to it, NOREPLACE)", SYS_renameat2, "Dldpa",  RENAME_NOREPLACE, 0, 0, ' ', MORE},
	{"renameat2(EXCHANGE file)",     SYS_renameat2,     "Dodpa",  RENAME_EXCHANGE, 0, 0, 'o', CORE},
	{"renameat2(EXCHANGE directory)", SYS_renameat2,    "DOdpa",  RENAME_EXCHANGE, 0, 0, 'o', CORE},
	{"renameat2(EXCHANGE from it)",  SYS_renameat2,     "dpDoa",  RENAME_EXCHANGE, 0, 0, 'o', MORE},
	{"renameat2(to it, WHITEOUT)",   SYS_renameat2,     "Dodpa",  RENAME_WHITEOUT, 0, 0, ' ', MORE},
	{"renameat2(from it, NOREPLACE)", SYS_renameat2,    "dpDta",  RENAME_NOREPLACE, 0, 0, 't', CORE},
	{"renameat2(from it, WHITEOUT)", SYS_renameat2,     "dpDta",  RENAME_WHITEOUT, 0, 0, 't', MORE},
	{"unlink",                       SYS_unlink,        "P",      0, 0, 0, ' ', CORE},
	{"rmdir",                        SYS_rmdir,         "P",      0, 0, 0, ' ', CORE},
	{"unlinkat",                     SYS_unlinkat,      "dp0",    0, 0, 0, ' ', CORE},
	{"unlinkat(REMOVEDIR)",          SYS_unlinkat,      "dpa",    AT_REMOVEDIR, 0, 0, ' ', CORE},
	{"chmod",                        SYS_chmod,         "Pa",     0755, 0, 0, ' ', CORE},
	{"fchmodat",                     SYS_fchmodat,      "dpa",    0755, 0, 0, ' ', CORE},
	{"fchmodat2",                    NR_fchmodat2,      "dpa0",   0755, 0, 0, ' ', CORE},
	{"fchmodat2(NOFOLLOW)",          NR_fchmodat2,      "dpab",   0755, AT_SYMLINK_NOFOLLOW, 0, ' ', MORE},
	{"fchmodat2(EMPTY_PATH)",        NR_fchmodat2,      "Qeab",   0755, AT_EMPTY_PATH, 0, ' ', MORE},
	{"fchmod",                       SYS_fchmod,        "Ra",     0755, 0, 0, ' ', CORE},
	{"chown",                        SYS_chown,         "Pmm",    0, 0, 0, ' ', CORE},
	{"lchown",                       SYS_lchown,        "Pmm",    0, 0, 0, ' ', MORE},
	{"fchownat",                     SYS_fchownat,      "dpmm0",  0, 0, 0, ' ', CORE},
	{"fchownat(NOFOLLOW)",           SYS_fchownat,      "dpmma",  AT_SYMLINK_NOFOLLOW, 0, 0, ' ', MORE},
	{"fchownat(EMPTY_PATH)",         SYS_fchownat,      "Qemma",  AT_EMPTY_PATH, 0, 0, ' ', MORE},
	{"fchown",                       SYS_fchown,        "Rmm",    0, 0, 0, ' ', CORE},
	{"utime",                        SYS_utime,         "PY",     0, 0, 0, ' ', CORE},
	{"utimes",                       SYS_utimes,        "PU",     0, 0, 0, ' ', CORE},
	{"futimesat",                    SYS_futimesat,     "dpU",    0, 0, 0, ' ', CORE},
	{"utimensat",                    SYS_utimensat,     "dpT0",   0, 0, 0, ' ', CORE},
	{"utimensat(NOFOLLOW)",          SYS_utimensat,     "dpTa",   AT_SYMLINK_NOFOLLOW, 0, 0, ' ', MORE},
	{"utimensat(EMPTY_PATH)",        SYS_utimensat,     "QeTa",   AT_EMPTY_PATH, 0, 0, ' ', MORE},
	{"utimensat(descriptor)",        SYS_utimensat,     "R0T0",   0, 0, 0, ' ', CORE},
	{"truncate",                     SYS_truncate,      "Pa",     1, 0, 0, ' ', CORE},
	{"ftruncate",                    SYS_ftruncate,     "Ra",     1, 0, 0, ' ', CORE},
	{"fallocate",                    SYS_fallocate,     "R00a",   4096, 0, 0, ' ', CORE},
	{"setxattr",                     SYS_setxattr,      "Pnu10",  0, 0, 0, ' ', CORE},
	{"lsetxattr",                    SYS_lsetxattr,     "Pnu10",  0, 0, 0, ' ', CORE},
	{"fsetxattr",                    SYS_fsetxattr,     "Rnu10",  0, 0, 0, ' ', CORE},
	{"setxattrat",                   NR_setxattrat,     "dp0nAs", 16, 0, 0, ' ', CORE},
	{"setxattrat(EMPTY_PATH)",       NR_setxattrat,     "QeanAs", AT_EMPTY_PATH, 16, 0, ' ', MORE},
	{"removexattr",                  SYS_removexattr,   "PN",     0, 0, 0, ' ', CORE},
	{"lremovexattr",                 SYS_lremovexattr,  "PN",     0, 0, 0, ' ', MORE},
	{"fremovexattr",                 SYS_fremovexattr,  "RN",     0, 0, 0, ' ', MORE},
	{"removexattrat",                NR_removexattrat,  "dp0N",   0, 0, 0, ' ', CORE},
	{"getxattr",                     SYS_getxattr,      "PNvz",   0, 0, 0, 'r', CORE},
	{"lgetxattr",                    SYS_lgetxattr,     "PNvz",   0, 0, 0, 'r', MORE},
	{"fgetxattr",                    SYS_fgetxattr,     "RNvz",   0, 0, 0, 'r', MORE},
	{"getxattrat",                   NR_getxattrat,     "dp0NAs", 16, 0, 0, 'r', CORE},
	{"listxattr",                    SYS_listxattr,     "Pvz",    0, 0, 0, 'r', MORE},
	{"llistxattr",                   SYS_llistxattr,    "Pvz",    0, 0, 0, 'r', MORE},
	{"flistxattr",                   SYS_flistxattr,    "Rvz",    0, 0, 0, 'r', MORE},
	{"listxattrat",                  NR_listxattrat,    "dp0vz",  0, 0, 0, 'r', MORE},
	{"file_getattr",                 NR_file_getattr,   "dpGs0",  24, 0, 0, ' ', MORE},
	{"file_setattr",                 NR_file_setattr,   "dpGs0",  24, 0, 0, ' ', CORE},
	{"readlink",                     SYS_readlink,      "Pvz",    0, 0, 0, 'r', MORE},
	{"readlinkat",                   SYS_readlinkat,    "dpvz",   0, 0, 0, 'r', MORE},
	{"getdents64",                   SYS_getdents64,    "Rvz",    0, 0, 0, 'r', CORE},
	{"getdents",                     SYS_getdents,      "Rvz",    0, 0, 0, 'r', MORE},
	{"read",                         SYS_read,          "Rvz",    0, 0, 0, 'r', CORE},
	{"pread64",                      SYS_pread64,       "Rvz0",   0, 0, 0, 'r', MORE},
	{"write",                        SYS_write,         "Ru1",    0, 0, 0, ' ', CORE},
	{"pwrite64",                     SYS_pwrite64,      "Ru10",   0, 0, 0, ' ', MORE},
	{"fcntl(F_SETLEASE)",            SYS_fcntl,         "Rab",    F_SETLEASE, F_WRLCK, 0, 'L', CORE},
	{"ioctl(FS_IOC_SETFLAGS)",       SYS_ioctl,         "RaG",    FS_IOC_SETFLAGS, 0, 0, ' ', CORE},
	{"ioctl(FS_IOC_FSSETXATTR)",     SYS_ioctl,         "RaG",    FS_IOC_FSSETXATTR, 0, 0, ' ', MORE},
	{"bind",                         SYS_bind,          "SkK",    0, 0, 0, ' ', CORE},
	{"connect",                      SYS_connect,       "SkK",    0, 0, 0, ' ', MORE},
	{"chdir",                        SYS_chdir,         "P",      0, 0, 0, 'c', MORE},
	{"fchdir",                       SYS_fchdir,        "Q",      0, 0, 0, 'c', MORE},
	{"chroot",                       SYS_chroot,        "P",      0, 0, 0, 'c', MORE},
	{"pivot_root",                   SYS_pivot_root,    "PP",     0, 0, 0, ' ', MORE},
	{"mount(bind on it)",            SYS_mount,         "OPea0",  4096, 0, 0, 'M', CORE},
	{"mount(remount)",               SYS_mount,         "ePea0",  4096 | 32, 0, 0, 'M', MORE},
	{"umount2",                      SYS_umount2,       "Pa",     2, 0, 0, 'M', CORE},
	{"open_tree(CLONE)",             SYS_open_tree,     "dpa",    1, 0, 0, 'M', CORE},
	{"open_tree",                    SYS_open_tree,     "dp0",    0, 0, 0, 'w', MORE},
	{"open_tree_attr",               NR_open_tree_attr, "dpaGs",  1, 32, 0, 'M', MORE},
	{"move_mount",                   SYS_move_mount,    "DOdp0",  0, 0, 0, 'M', MORE},
	{"mount_setattr",                SYS_mount_setattr, "dp0Gs",  32, 0, 0, 'M', MORE},
	{"fspick",                       SYS_fspick,        "dp0",    0, 0, 0, 'M', MORE},
	{"swapon",                       SYS_swapon,        "P0",     0, 0, 0, ' ', MORE},
	{"swapoff",                      SYS_swapoff,       "P",      0, 0, 0, ' ', MORE},
	{"acct",                         SYS_acct,          "P",      0, 0, 0, 'L', MORE},
	{"quotactl",                     SYS_quotactl,      "aP00",   0x80000100, 0, 0, ' ', MORE},
	{"quotactl_fd",                  443,               "Ra00",   0x80000100, 0, 0, ' ', MORE},
	{"uselib",                       SYS_uselib,        "P",      0, 0, 0, ' ', MORE},
	{"stat",                         SYS_stat,          "Pv",     0, 0, 0, ' ', MORE},
	{"lstat",                        SYS_lstat,         "Pv",     0, 0, 0, ' ', MORE},
	{"newfstatat",                   SYS_newfstatat,    "dpv0",   0, 0, 0, ' ', MORE},
	{"statx",                        SYS_statx,         "dp0av",  0xfff, 0, 0, ' ', MORE},
	{"statfs",                       SYS_statfs,        "Pv",     0, 0, 0, ' ', MORE},
	{"access",                       SYS_access,        "Pa",     R_OK, 0, 0, ' ', MORE},
	{"faccessat",                    SYS_faccessat,     "dpa",    R_OK, 0, 0, ' ', MORE},
	{"faccessat2",                   439,               "dpa0",   W_OK, 0, 0, ' ', MORE},
	{"inotify_add_watch",            SYS_inotify_add_watch, "IPa", 0xfff, 0, 0, ' ', MORE},
	{"fanotify_mark",                SYS_fanotify_mark, "Iaadp",  1, 0, 0, ' ', MORE},
	{"name_to_handle_at",            SYS_name_to_handle_at, "dpvV0", 0, 0, 0, 'H', CORE},
	{"execve",                       SYS_execve,        "PXE",    0, 0, 0, 'x', CORE},
	{"execveat",                     SYS_execveat,      "dpXE0",  0, 0, 0, 'x', CORE},
	{"execveat(EMPTY_PATH)",         SYS_execveat,      "QeXEa",  AT_EMPTY_PATH, 0, 0, 'x', MORE},
	{"copy_file_range(into it)",     SYS_copy_file_range, "f0R0a0", 64, 0, 0, ' ', CORE},
	{"copy_file_range(from it)",     SYS_copy_file_range, "R0f0a0", 64, 0, 0, 'o', CORE},
	{"sendfile(into it)",            SYS_sendfile,      "Rf0a",   64, 0, 0, ' ', MORE},
	{"sendfile(from it)",            SYS_sendfile,      "fR0a",   64, 0, 0, 'o', MORE},
	{"splice(into it)",              SYS_splice,        "i0R0a0", 64, 0, 0, ' ', MORE},
	{"splice(from it)",              SYS_splice,        "R0j0a0", 64, 0, 0, 'j', MORE},
	{"ioctl(FICLONE into it)",       SYS_ioctl,         "Raf",    0x40049409, 0, 0, ' ', CORE},
	{"ioctl(FICLONE from it)",       SYS_ioctl,         "faR",    0x40049409, 0, 0, 'o', MORE},
	{"writev",                       SYS_writev,        "RB1",    0, 0, 0, ' ', MORE},
	{"pwritev",                      SYS_pwritev,       "RB100",  0, 0, 0, ' ', MORE},
	{"pwritev2",                     SYS_pwritev2,      "RB1000", 0, 0, 0, ' ', MORE},
	{"vmsplice",                     SYS_vmsplice,      "RB10",   0, 0, 0, ' ', MORE},
	{"readv",                        SYS_readv,         "RC1",    0, 0, 0, 'r', MORE},
	{"preadv",                       SYS_preadv,        "RC100",  0, 0, 0, 'r', MORE},
	{"preadv2",                      SYS_preadv2,       "RC1000", 0, 0, 0, 'r', MORE},
	{"mmap(SHARED, WRITE)",          SYS_mmap,          "0zabR0", PROT_READ | PROT_WRITE, MAP_SHARED, 0, 'm', CORE},
	{"mmap(PRIVATE)",                SYS_mmap,          "0zabR0", PROT_READ, MAP_PRIVATE, 0, 'm', CORE},
};

static const struct { const char *name; int flags; bool core; char then; } flags[] = {
	{"O_RDONLY",                     O_RDONLY,                        true, 'w'},
	{"O_WRONLY",                     O_WRONLY,                        true, 'w'},
	{"O_RDWR",                       O_RDWR,                          true, 'W'},
	{"O_ACCMODE",                    O_ACCMODE,                       false, 'w'},
	{"O_RDONLY|O_TRUNC",             O_RDONLY | O_TRUNC,              true, 'w'},
	{"O_WRONLY|O_TRUNC",             O_WRONLY | O_TRUNC,              true, 'w'},
	{"O_WRONLY|O_APPEND",            O_WRONLY | O_APPEND,             false, 'w'},
	{"O_WRONLY|O_SYNC",              O_WRONLY | O_SYNC,               false, 'w'},
	{"O_RDWR|O_NOATIME",             O_RDWR | O_NOATIME,              false, 'w'},
	{"O_RDWR|O_NOFOLLOW",            O_RDWR | O_NOFOLLOW,             false, 'w'},
	{"O_RDWR|O_NONBLOCK",            O_RDWR | O_NONBLOCK,             false, 'w'},
	{"O_RDWR|O_CREAT",               O_RDWR | O_CREAT,                true, 'W'},
	{"O_RDONLY|O_CREAT",             O_RDONLY | O_CREAT,              true, 'w'},
	{"O_WRONLY|O_CREAT|O_TRUNC",     O_WRONLY | O_CREAT | O_TRUNC,    true, 'w'},
	{"O_WRONLY|O_CREAT|O_EXCL",      O_WRONLY | O_CREAT | O_EXCL,     true, 'w'},
	{"O_RDWR|O_CREAT|O_NOFOLLOW",    O_RDWR | O_CREAT | O_NOFOLLOW,   false, 'w'},
	{"O_RDWR|O_CREAT|O_EXCL|O_NOFOLLOW", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, false, 'w'},
	{"O_RDONLY|O_CREAT|O_DIRECTORY", O_RDONLY | O_CREAT | O_DIRECTORY, false, 'w'},
	{"O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, false, 'w'},
	{"O_TMPFILE|O_RDWR",             O_TMPFILE | O_RDWR,              true, 'T'},
	{"O_TMPFILE|O_WRONLY|O_EXCL",    O_TMPFILE | O_WRONLY | O_EXCL,   false, 'T'},
	{"O_PATH",                       O_PATH,                          true, 'p'},
	{"O_PATH|O_NOFOLLOW",            O_PATH | O_NOFOLLOW,             false, 'p'},
	{"O_DIRECTORY",                  O_RDONLY | O_DIRECTORY,          true, 'W'},
};
/* clang-format on */

static struct call calls[MAX_CALLS];
static int call_count;

static void add(struct call call, char *name)
{
	if (call_count == MAX_CALLS || !name)
		die("too many calls");
	call.name = name;
	calls[call_count++] = call;
}

static char *joined(const char *format, const char *a, const char *b, const char *c)
{
	char *text = NULL;
	return asprintf(&text, format, a, b, c) < 0 ? NULL : text;
}

/* openat2 with each combination of its flags; BENEATH and IN_ROOT exclude each other. */
static void add_resolve(void)
{
	static const char *const names[] = { "NO_XDEV ", "NO_MAGICLINKS ", "NO_SYMLINKS ",
					     "BENEATH ", "IN_ROOT ",	   "CACHED " };
	static const int ways[] = { O_RDWR | O_CREAT, O_RDONLY, O_WRONLY | O_CREAT | O_EXCL };
	static const char *const spelt[] = { "O_RDWR|O_CREAT", "O_RDONLY", "O_WRONLY|O_CREAT|O_EXCL" };
	for (uint64_t resolve = 1; resolve < 64; resolve++) {
		if ((resolve & RESOLVE_BENEATH) && (resolve & RESOLVE_IN_ROOT))
			continue;
		char text[128] = "";
		for (int bit = 0; bit < 6; bit++) {
			if (resolve & (1u << bit))
				strcat(text, names[bit]);
		}
		for (int way = 0; way < 3; way++) {
			/* RESOLVE_CACHED makes nothing; each flag alone and the common pairs take part in the whole product. */
			if (way != 1 && (resolve & RESOLVE_CACHED))
				continue;
			bool core = way < 2 && (resolve & (resolve - 1)) == 0;
			add((struct call){ .number = SYS_openat2,
					   .args = "dpHs",
					   .a = (uint64_t)ways[way],
					   .b = sizeof(struct open_how),
					   .resolve = resolve,
					   .then = 'w',
					   .core = core },
			    joined("openat2(%s, %s)%s", spelt[way], text, ""));
		}
	}
}

int calls_prepare(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add(rows[i], joined("%s%s%s", rows[i].name, "", ""));
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct call call = {
			.a = (uint64_t)flags[i].flags, .then = flags[i].then, .core = flags[i].core, .b = 0644
		};
		call.number = SYS_open, call.args = "Pab";
		add(call, joined("%s(%s)%s", "open", flags[i].name, ""));
		call.number = SYS_openat, call.args = "dpab";
		add(call, joined("%s(%s)%s", "openat", flags[i].name, ""));
		call.number = SYS_openat2, call.args = "dpHs", call.b = sizeof(struct open_how);
		add(call, joined("%s(%s)%s", "openat2", flags[i].name, ""));
	}
	add_resolve();
	return call_count;
}

const struct call *call_at(int index)
{
	return &calls[index];
}
