/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of settings would allow agents. */
#ifndef CORDON_APPROVAL_WIDENING_H
#define CORDON_APPROVAL_WIDENING_H

#include "base/buf.h"
#include "store/records.h"

/* Lists what agents could do under the settings `after` that they can't do under `before`; adds nothing when that is
 * nothing. It compares whole records, so that a limit that is left out or reset counts like one that is named. */
int cordon_settings_widening(const struct cordon_settings *before, const struct cordon_settings *after,
			     struct cordon_buf *ret_text, struct cordon_error *err);

#endif
