/* SPDX-License-Identifier: Apache-2.0 */
/* The version, from the build. */
#include "cordon.h"

const char *cordon_version(void)
{
	return CORDON_VERSION;
}
