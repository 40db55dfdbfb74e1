/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the other executables and the data files of cordon. */
#ifndef CORDON_BASE_PROGRAM_H
#define CORDON_BASE_PROGRAM_H

#include "base/error.h"
#include "base/path.h"

/* Looks beside the running executable (which is in a build tree, or installed with the others), then in
 * CORDON_LIBEXEC. Returns -ENOENT with kind not_found; the caller adds what to do about it. */
int cordon_program_find(const char *name, char ret_path[static CORDON_PATH_MAX], struct cordon_error *err);
/* The same for a directory of data files, which is installed in CORDON_DATA; "" when there is none. */
void cordon_data_find(const char *name, char ret_path[static CORDON_PATH_MAX]);

#endif
