/* SPDX-License-Identifier: Apache-2.0 */
/* The names that git gives to contents. Nothing may rely on them for security: two contents can be made that have one name. */
#ifndef CORDON_VIEW_SHA1_H
#define CORDON_VIEW_SHA1_H

#include <stddef.h>

#define CORDON_BLOB_NAME_SIZE 41

/* SHA-1 in hexadecimal digits. */
void cordon_sha1(const void *bytes, size_t n, char ret_hex[static CORDON_BLOB_NAME_SIZE]);
/* The name of a blob with this content, in hexadecimal digits. */
void cordon_blob_name(const void *bytes, size_t n, char ret_name[static CORDON_BLOB_NAME_SIZE]);

#endif
