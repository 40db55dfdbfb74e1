/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel whether the host has a name, for reports; opens nothing. */
#include <fcntl.h>
#include <sys/stat.h>

#include "sandbox/watch/outside.h"

mode_t cordon_outside_type(const char *path)
{
	struct statx st;

	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0
		       ? st.stx_mode & S_IFMT
		       : 0;
}

bool cordon_outside_exists(const char *path)
{
	return cordon_outside_type(path) != 0;
}

bool cordon_outside_is_dir(const char *path)
{
	return S_ISDIR(cordon_outside_type(path));
}
