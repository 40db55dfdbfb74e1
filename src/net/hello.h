/* SPDX-License-Identifier: Apache-2.0 */
/* The server name in the first message of a TLS client. Pure; everything that is parsed here was written by the
 * agent. */
#ifndef CORDON_NET_HELLO_H
#define CORDON_NET_HELLO_H

#include <sys/types.h>

#include "policy/net.h"

#define CORDON_HELLO_MAX 32768 /* of all records of the message together; real ones have at most a few thousand bytes */
#define CORDON_TLS_HANDSHAKE 22 /* the first byte of a TLS stream */

/*
 * Looks at the first `n` bytes of a stream. Returns how many of them the message takes, and its clean name; 0 when it
 * is not complete yet; -EMSGSIZE when it is longer than CORDON_HELLO_MAX; -ENOENT when it has no server name;
 * -EPROTONOSUPPORT when it has an encrypted one, too; -EBADMSG when it is no ClientHello, or its name is no host name.
 */
ssize_t cordon_hello_name(const uint8_t *bytes, size_t n, char ret_name[static CORDON_NET_NAME_SIZE]);

#endif
