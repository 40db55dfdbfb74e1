/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for keys: child processes find zeros there, and no core dump has it. */
#ifndef CORDON_BASE_SECRET_H
#define CORDON_BASE_SECRET_H

#include <stddef.h>

/* Returns zeroed memory, or NULL. */
unsigned char *cordon_secret_new(size_t size);
/* Erases it. Returns NULL. */
unsigned char *cordon_secret_free(unsigned char *secret, size_t size);

#endif
