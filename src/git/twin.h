/* SPDX-License-Identifier: Apache-2.0 */
/* Names that git, or a file system, takes for ".git". */
#ifndef CORDON_GIT_TWIN_H
#define CORDON_GIT_TWIN_H

#include "base/util.h"

/* Whether a component is a twin of ".git": other letters, characters that some file systems ignore, or a short name. */
bool cordon_git_is_twin(const char *name, size_t n);

#endif
