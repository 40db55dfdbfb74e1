/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors of lists. They are opaque to clients; a cursor that we did not make is refused. */
#include <stdio.h>

#include "mcp/internal.h"

#define PREFIX "c1-"

int cordon_mcp_cursor_read(const json_t *params, size_t *ret_offset, struct cordon_mcp_fault *fault)
{
	const json_t *cursor = json_object_get(params, "cursor");
	const char *text = json_string_value(cursor);
	uint64_t offset = 0;

	if (cursor && (!text || strncmp(text, PREFIX, strlen(PREFIX)) != 0 ||
		       cordon_parse_u64(text + strlen(PREFIX), 1, CORDON_LIST_MAX, &offset) < 0))
		return cordon_mcp_fail(fault, CORDON_MCP_INVALID_PARAMS, "Invalid cursor");
	*ret_offset = offset;
	return 0;
}

json_t *cordon_mcp_cursor_make(size_t offset)
{
	return json_sprintf(PREFIX "%zu", offset);
}
