/* SPDX-License-Identifier: Apache-2.0 */
/* Makes N small files in directories of a thousand: make_files DIR N */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long n = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	char path[4096];

	if (n <= 0 || mkdir(argv[1], 0755) < 0)
		return 2;
	for (long i = 0; i < n; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/d%ld", argv[1], i / 1000);
		if (i % 1000 == 0 && mkdir(path, 0755) < 0)
			return 1;
		snprintf(path, sizeof(path), "%s/d%ld/file%ld", argv[1], i / 1000, i);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 || write(fd, path, 64) != 64 || close(fd) < 0)
			return 1;
	}
	return 0;
}
