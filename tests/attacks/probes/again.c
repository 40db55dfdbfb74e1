/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a file and removes it, at last by its second name in a free directory, so that the host's next file may get its number
 * within the same tick of the clock: again MINE SECOND HOSTS. Says "g" after each round, waits for a byte, and tries to open the file of the host's for writing: "Y" when it could,
 * else "n". Ends with its standard input.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char byte;

	if (argc != 4)
		return 2;
	do {
		int fd = open(argv[1], O_CREAT | O_EXCL | O_WRONLY, 0600);

		if (fd < 0 || close(fd) < 0 || link(argv[1], argv[2]) < 0 || unlink(argv[1]) < 0 || unlink(argv[2]) < 0)
			return 3;
		if (write(1, "g", 1) != 1 || read(0, &byte, 1) != 1)
			break;
		fd = open(argv[3], O_RDWR);
		if (fd >= 0 && (write(fd, "evil", 4) != 4 || close(fd) < 0))
			return 4;
		if (write(1, fd < 0 ? "n" : "Y", 1) != 1)
			return 5;
	} while (read(0, &byte, 1) == 1);
	return 0;
}
