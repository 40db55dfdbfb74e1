/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes a sandbox of cordon from inside. */
#ifndef CORDON_SANDBOX_HOST_NESTED_H
#define CORDON_SANDBOX_HOST_NESTED_H

#include <stdbool.h>

#define CORDON_INIT_NAME "cordon-init" /* what PID 1 of a sandbox is called */

/* Whether this process runs in a sandbox of cordon with namespaces, in which nothing can make another one. It is for
 * messages only: any container can call its PID 1 so. */
bool cordon_nested(void);

#endif
