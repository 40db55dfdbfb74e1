/* SPDX-License-Identifier: Apache-2.0 */
/* What the official conformance suite expects a server under test to have. */
#ifndef CORDON_TESTS_CONFORMANCE_FIXTURE_H
#define CORDON_TESTS_CONFORMANCE_FIXTURE_H

#include "mcp/internal.h"

/* One red pixel as PNG, and a fraction of a second of silence as WAV. */
#define PIXEL "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
#define SILENCE "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="

extern const struct cordon_mcp_tool *const fixture_tools[];

/* An input_required result: `requests` is JSON. With `step` it carries a requestState for what comes after it. */
json_t *fixture_ask(const struct cordon_mcp_request *request, const char *name, const char *requests, int step);

#endif
