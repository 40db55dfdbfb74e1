/* SPDX-License-Identifier: Apache-2.0 */
/* The attacker of the matrix: makes the product of calls, spellings and targets, and tries the cells that it is told to.
 *
 * attacker calls                   prints "number name" of every row of the table of calls
 * attacker numbers N...            calls each number with every argument -1 and prints "number errno"; -1 stands for a call that did not return
 * attacker cells ROOT TARGET...    prints how many cells there are
 * attacker name CELL ROOT TARGET...
 * attacker serve ROOT TARGET...    reads lines "FROM TO SIXTH SEED" and answers with lines and "done"; SIXTH 1 stands for all
 * attacker native ROOT TARGET...   the same without capabilities
 *
 * TARGET is a letter (see struct target), a colon and a path. The number of a cell is (target * spellings + spelling) * calls + call. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "matrix.h"

#define CELL_SECONDS 20
#define FILE_TEXT "#!/bin/true\n"

struct world world;
static int call_total;
static volatile long *current; /* the cell in hand, seen by the process that reports a death */

void die(const char *what)
{
	printf("BROKEN %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(3);
}

/* ---- the places where everything is allowed ---- */

static bool is_allowed(const struct target *target)
{
	return strchr("fdn", target->kind);
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_mode == b->st_mode && a->st_size == b->st_size &&
	       a->st_nlink == b->st_nlink && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void clear(const char *path)
{
	char inner[4096];
	chmod(path, 0755);
	if (unlink(path) == 0 || errno == ENOENT)
		return;
	snprintf(inner, sizeof(inner), "%s/in", path);
	unlink(inner);
	rmdir(path);
}

/* Puts an allowed target into the state in which every cell finds it. */
static void reset(const struct target *target, struct stat *ret_st)
{
	memset(ret_st, 0, sizeof(*ret_st));
	clear(target->path);
	if (target->kind == 'd' && mkdir(target->path, 0755) < 0)
		die(target->path);
	if (target->kind == 'f') {
		int fd = open(target->path, O_WRONLY | O_CREAT | O_EXCL, 0755);
		if (fd < 0 || write(fd, FILE_TEXT, strlen(FILE_TEXT)) != (ssize_t)strlen(FILE_TEXT))
			die(target->path);
		fsetxattr(fd, "user.secret", "no", 2, 0);
		close(fd);
	}
	if (lstat(target->path, ret_st) < 0 && errno != ENOENT)
		die(target->path);
}

/* What a cell made of an allowed target, and an errno: the same natively and inside, but for a list. */
static void tell(long cell, int outcome, const struct stat *now)
{
	if (!now->st_mode)
		printf("%ld %d -\n", cell, outcome);
	else if (S_ISDIR(now->st_mode))
		printf("%ld %d %o\n", cell, outcome, now->st_mode);
	else
		printf("%ld %d %o:%ld:%d\n", cell, outcome, now->st_mode,
		       S_ISLNK(now->st_mode) ? 0 : (long)now->st_size, (int)now->st_nlink);
}

static void cell_allowed(long cell, const struct call *call, const struct target *target, struct spelled *spelled,
			 struct stat *state)
{
	char path[4200];
	const char *told = NULL;
	struct stat now = { 0 };
	int outcome = call_try(call, target, spelled, &told);
	if (outcome < 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", world.root, target->path);
	if (lstat(path, &now) < 0)
		memset(&now, 0, sizeof(now));
	tell(cell, outcome, &now);
	if (told)
		printf("TOLD %ld %s\n", cell, told);
	if (!same(&now, state)) {
		int here = open(".", O_PATH | O_CLOEXEC);
		if (chdir(world.root) < 0)
			die("back to the root");
		reset(target, state);
		if (here < 0 || fchdir(here) < 0)
			die("back to where the spelling starts");
		close(here);
	}
	if (call->then == 'c' && chdir(world.root) < 0)
		die("back to the root");
}

static void cell_denied(long cell, const struct call *call, const struct target *target, struct spelled *spelled)
{
	char path[4200];
	const char *told = NULL;
	struct stat now;
	int outcome = call_try(call, target, spelled, &told);
	snprintf(path, sizeof(path), "%s/%s", world.root, target->path);
	if (target->kind == 'g' && outcome >= 0 && lstat(path, &now) == 0) {
		if (S_ISLNK(now.st_mode))
			told = "a link stands where no link may";
		clear(path);
	}
	if (told)
		printf("TOLD %ld %s\n", cell, told);
}

/* ---- the product ---- */

/* Every boundary meets each call in the main spellings and each core call in every spelling. So does the first place where everything is
 * allowed, which is the held one; in the others, where less of cordon is in the way, core calls in the main spellings do. */
static bool takes_part(const struct call *call, int spelling, const struct target *target)
{
	if (is_allowed(target) && strncmp(target->path, "conf/", 5) != 0)
		return call->core && spelling_is_main(spelling);
	return call->core || spelling_is_main(spelling);
}

/* A directory in which the run may make things, as near to the target as there is one. */
static const char *place_of(const struct target *target)
{
	static const char *const places[] = { "conf", "free", ".git" };
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		size_t size = strlen(places[i]);
		if (strncmp(target->path, places[i], size) == 0 && target->path[size] == '/')
			return places[i];
	}
	return "scratch";
}

/* One target in one spelling with every call, so that what the spelling needs is opened once. A cell that left its place spells anew. */
static void group(long first, long from, long to, int sixth, int seed)
{
	int spelling = (int)(first / call_total % spelling_count), index = (int)(first / call_total / spelling_count);
	const struct target *target = &world.targets[index];
	struct spelled spelled;
	struct stat state = { 0 };
	bool fresh = false;
	int turn = 0; /* depends on the name alone, so that the parts of all modes have the same cells */
	for (const char *p = target->path; *p; p++)
		turn += *p;

	world.compare = is_allowed(target);
	world.beside = spelling % 2 ? "scratch" : place_of(target);
	if (world.compare)
		reset(target, &state);
	for (int i = 0; i < call_total; i++) {
		const struct call *call = call_at(i);
		long cell = first + i;
		if (cell < from || cell >= to || !takes_part(call, spelling, target) ||
		    (sixth > 1 && (i + spelling + turn) % sixth != seed % sixth))
			continue;
		*current = cell;
		if (!fresh && !spell(spelling, index, &spelled))
			return;
		spelling_restore(spelling, index);
		fresh = true;
		if (world.compare) {
			struct stat before = state;
			cell_allowed(cell, call, target, &spelled, &state);
			/* A target that was made anew is another file: what the spelling opened has to be opened again. */
			if (call->then == 'c' || !same(&before, &state)) {
				spelled_done(&spelled);
				fresh = false;
			}
		} else {
			cell_denied(cell, call, target, &spelled);
			if (call->then == 'c') {
				spelled_done(&spelled);
				fresh = false;
			}
		}
	}
	if (fresh)
		spelled_done(&spelled);
}

static void helper(int line)
{
	char path[4096];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		ssize_t got = read(line, path, sizeof(path) - 1);
		if (got <= 0)
			_exit(0);
		path[got] = '\0';
		char answer = chdir(world.root) == 0 && chdir(path) == 0 ? 'y' : 'n';
		if (write(line, &answer, 1) != 1)
			_exit(0);
	}
}

static void start_helper(void)
{
	int line[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) < 0)
		die("socketpair");
	world.child = fork();
	if (world.child == 0)
		helper(line[1]);
	close(line[1]);
	world.child_in = line[0];
}

static void expired(int number)
{
	(void)number;
	_exit(4);
}

/* A batch runs in a process of its own: where it ends too early, the cell is known. */
static void batch(long from, long to, int sixth, int seed)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGALRM, expired);
		signal(SIGPIPE, SIG_IGN);
		signal(SIGXFSZ, SIG_IGN);
		start_helper();
		for (long first = from - from % call_total; first < to; first += call_total) {
			alarm(CELL_SECONDS);
			group(first, from, to, sixth, seed);
		}
		fflush(stdout);
		kill(world.child, SIGKILL);
		_exit(0);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	if (status)
		printf("DIED %ld %x\n", *current, status);
	printf("done\n");
	fflush(stdout);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
		prctl(PR_CAPBSET_DROP, capability);
	if (syscall(SYS_capset, &header, data) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("capset");
}

static void serve(void)
{
	long from, to;
	int sixth, seed;
	if (chdir(world.root) < 0)
		die(world.root);
	umask(022);
	mkdir("scratch/links", 0755);
	mkdir("scratch/made", 0755);
	spellings_prepare();
	printf("ready\n");
	fflush(stdout);
	while (scanf("%ld %ld %d %d", &from, &to, &sixth, &seed) == 4)
		batch(from, to, sixth, seed);
}

static void take_targets(char **words, int count)
{
	world.targets = calloc((size_t)count + 1, sizeof(*world.targets));
	for (int i = 0; i < count; i++)
		world.targets[i] = (struct target){ .path = words[i] + 2, .kind = words[i][0] };
	world.target_count = count;
}

static void name_cell(long cell)
{
	const struct target *target = &world.targets[cell / call_total / spelling_count];
	printf("%s | %s | %s\n", call_at((int)(cell % call_total))->name,
	       spelling_name((int)(cell / call_total % spelling_count)), target->path);
}

/* Each in a process of its own: some of them end it. */
static void try_numbers(char **words)
{
	for (; *words; words++) {
		int status = 0;
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			alarm(CELL_SECONDS);
			long result = syscall(strtol(*words, NULL, 10), -1L, -1L, -1L, -1L, -1L, -1L);
			_exit(result == -1 ? errno : 0);
		}
		waitpid(pid, &status, 0);
		printf("%s %d\n", *words, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	}
}

int main(int argc, char **argv)
{
	call_total = calls_prepare();
	current = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (argc == 2 && strcmp(argv[1], "calls") == 0) {
		for (int i = 0; i < call_total; i++)
			printf("%d %s\n", call_at(i)->number, call_at(i)->name);
		return 0;
	}
	if (argc > 2 && strcmp(argv[1], "numbers") == 0) {
		try_numbers(argv + 2);
		return 0;
	}
	bool named = argc > 3 && strcmp(argv[1], "name") == 0;
	if (argc < 3)
		return 2;
	world.root = argv[named ? 3 : 2];
	take_targets(argv + (named ? 4 : 3), argc - (named ? 4 : 3));
	if (named) {
		name_cell(strtol(argv[2], NULL, 10));
		return 0;
	}
	if (strcmp(argv[1], "cells") == 0) {
		printf("%d %d %d\n", world.target_count, spelling_count, call_total);
		for (int i = 0; i < spelling_count; i++)
			printf("%s\n", spelling_name(i));
		return 0;
	}
	if (strcmp(argv[1], "native") == 0)
		drop_capabilities();
	serve();
	return 0;
}
