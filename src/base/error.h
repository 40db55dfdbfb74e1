/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error object (struct cordon_error in cordon.h) and its helpers. Nothing is allocated, so all of it works after
 * a fork. Text that does not fit is cut at a whole character.
 */
#ifndef CORDON_BASE_ERROR_H
#define CORDON_BASE_ERROR_H

#include "base/util.h"
#include "cordon.h"

/* Fills `err` (if not NULL) and returns `code`, a negative errno. Escapes control characters and invalid UTF-8 in
 * the message. Clears where and hint. */
int cordon_fail(struct cordon_error *err, int code, cordon_kind kind, const char *fmt, ...) CORDON_PRINTF(4, 5);
/* The same with ": <strerror(-code)>" at the end, for failed system calls; ENOMEM becomes kind `limit`. */
int cordon_fail_errno(struct cordon_error *err, int code, const char *fmt, ...) CORDON_PRINTF(3, 4);
/* Puts context in front of the message: "fmt: message". Returns err->code, or `code` when err is NULL. */
int cordon_error_prefix(struct cordon_error *err, int code, const char *fmt, ...) CORDON_PRINTF(3, 4);
void cordon_error_where(struct cordon_error *err, const char *file, size_t line, size_t column);
void cordon_error_hint(struct cordon_error *err, const char *fmt, ...) CORDON_PRINTF(2, 3);

#ifdef __clang_analyzer__
/* The analyzer knows neither that a code is negative nor what these functions return, and would treat failures as
 * successes. */
#define cordon_fail(...) (cordon_fail(__VA_ARGS__), -1)
#define cordon_fail_errno(...) (cordon_fail_errno(__VA_ARGS__), -1)
#define cordon_error_prefix(...) (cordon_error_prefix(__VA_ARGS__), -1)
#endif

/* The kind with this name, as cordon_kind_name() returns it; CORDON_KIND_INTERNAL for any other name and for NULL. */
cordon_kind cordon_kind_parse(const char *name);

#endif
