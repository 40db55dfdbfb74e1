/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the place of GnuTLS in a static cordon-serve. Debian's libmicrohttpd can speak TLS and so refers to GnuTLS,
 * which needs nine more shared libraries in a process that everybody can send bytes to. This server never asks for TLS
 * (MHD_USE_TLS), so only the first two functions are ever called. A version of libmicrohttpd that refers to more does
 * not link, and meson.build then takes the shared library with GnuTLS.
 */
#include <stdlib.h>

int gnutls_global_init(void);
int gnutls_global_init(void)
{
	return 0;
}

void gnutls_global_deinit(void);
void gnutls_global_deinit(void)
{
}

void *(*gnutls_malloc)(size_t) = malloc;

#define UNUSED(name)                                                                                                   \
	_Noreturn void name(void);                                                                                     \
	_Noreturn void name(void)                                                                                      \
	{                                                                                                              \
		abort();                                                                                               \
	}

UNUSED(gnutls_alpn_set_protocols)
UNUSED(gnutls_bye)
UNUSED(gnutls_certificate_allocate_credentials)
UNUSED(gnutls_certificate_free_credentials)
UNUSED(gnutls_certificate_server_set_request)
UNUSED(gnutls_certificate_set_dh_params)
UNUSED(gnutls_certificate_set_retrieve_function2)
UNUSED(gnutls_certificate_set_retrieve_function3)
UNUSED(gnutls_certificate_set_x509_key_mem)
UNUSED(gnutls_certificate_set_x509_key_mem2)
UNUSED(gnutls_certificate_set_x509_trust_mem)
UNUSED(gnutls_cipher_get)
UNUSED(gnutls_credentials_set)
UNUSED(gnutls_deinit)
UNUSED(gnutls_dh_params_deinit)
UNUSED(gnutls_dh_params_import_pkcs3)
UNUSED(gnutls_dh_params_init)
UNUSED(gnutls_handshake)
UNUSED(gnutls_init)
UNUSED(gnutls_priority_deinit)
UNUSED(gnutls_priority_init)
UNUSED(gnutls_priority_set)
UNUSED(gnutls_protocol_get_version)
UNUSED(gnutls_psk_allocate_server_credentials)
UNUSED(gnutls_psk_free_server_credentials)
UNUSED(gnutls_psk_set_server_credentials_function)
UNUSED(gnutls_record_check_pending)
UNUSED(gnutls_record_get_direction)
UNUSED(gnutls_record_recv)
UNUSED(gnutls_record_send)
UNUSED(gnutls_session_get_ptr)
UNUSED(gnutls_session_set_ptr)
UNUSED(gnutls_strerror)
UNUSED(gnutls_transport_set_int2)
