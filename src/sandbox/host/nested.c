/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes a sandbox of cordon from inside. */
#include <fcntl.h>
#include <unistd.h>

#include "base/util.h"
#include "sandbox/host/nested.h"

bool cordon_nested(void)
{
	static const char name[] = CORDON_INIT_NAME "\n";
	char text[sizeof(name)] = "";
	autofd int fd = open("/proc/1/comm", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, text, sizeof(text) - 1) == (ssize_t)(sizeof(name) - 1) && cordon_streq(text, name);
}
