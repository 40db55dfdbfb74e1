/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a question about a path or host, as check and why print it. */
#ifndef CORDON_CLI_VERDICT_H
#define CORDON_CLI_VERDICT_H

#include <jansson.h>

#include "policy/asker.h"

/* Returns {"path","op","decision","reason","access","rule","where","resolved","exists"} of the last answer. */
json_t *cordon_asker_json(const struct cordon_asker *asker, const char *path, size_t len);

#endif
