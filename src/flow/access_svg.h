/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix of orchestrators and shared areas as a picture. */
#ifndef CORDON_FLOW_ACCESS_SVG_H
#define CORDON_FLOW_ACCESS_SVG_H

#include "base/buf.h"
#include "config/settings_file.h"

/* Writes an SVG document. All names are escaped. Returns 0, -ENOMEM or -E2BIG. */
int cordon_access_svg(const struct cordon_settings_file *settings, struct cordon_buf *ret_text);

#endif
