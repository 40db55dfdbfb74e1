/* SPDX-License-Identifier: Apache-2.0 */
/* What a file was when a view began. */
#include <fcntl.h>

#include "view/base.h"
#include "view/internal.h"

int cordon_base_read(const struct cordon_view *view, const struct cordon_delta *delta,
		     const struct cordon_delta_change *change, struct cordon_buf *ret_content, bool *ret_certain)
{
	(void)view, (void)delta, (void)change, (void)ret_content, (void)ret_certain;
	return -ENOENT;
}
