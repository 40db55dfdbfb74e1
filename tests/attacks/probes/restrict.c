/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives up rights of its own and then makes an entry: restrict WAY NAME. WAY is none, landlock, seccomp or both, and may end in
 * -child (a child makes the entry) or -exec (after an exec of itself). Prints the name of the error, or "made". The Landlock
 * layer forbids nothing that is tried here but making files in the current directory; the filter allows everything.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAKE_REG (1ULL << 8)

static void landlock(void)
{
	uint64_t handled = MAKE_REG;
	int ruleset = (int)syscall(444, &handled, sizeof(handled), 0);

	if (ruleset < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(446, ruleset, 0) < 0) {
		printf("restrict %s\n", strerrorname_np(errno));
		exit(1);
	}
}

static void filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		exit(1);
}

static int make(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY, 0644);

	printf("%s\n", fd >= 0 ? "made" : strerrorname_np(errno));
	return 0;
}

int main(int argc, char **argv)
{
	char base[32];
	const char *rest;

	if (argc != 3)
		return 2;
	if (strcmp(argv[1], "now") == 0)
		return make(argv[2]);
	rest = strchr(argv[1], '-');
	snprintf(base, sizeof(base), "%.*s", (int)(rest ? rest - argv[1] : (long)strlen(argv[1])), argv[1]);
	if (strcmp(base, "landlock") == 0 || strcmp(base, "both") == 0)
		landlock();
	if (strcmp(base, "seccomp") == 0 || strcmp(base, "both") == 0)
		filter();
	if (rest && strcmp(rest, "-child") == 0) {
		pid_t pid = fork();

		if (pid > 0)
			return waitpid(pid, NULL, 0) == pid ? 0 : 1;
	}
	if (rest && strcmp(rest, "-exec") == 0) {
		execl(argv[0], argv[0], "now", argv[2], NULL);
		return 1;
	}
	return make(argv[2]);
}
