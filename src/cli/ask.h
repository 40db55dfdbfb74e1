/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the person at the terminal, and prints what they must read without cutting any of it. */
#ifndef CORDON_CLI_ASK_H
#define CORDON_CLI_ASK_H

#include <stdbool.h>
#include <stdio.h>

/* Whether somebody can be asked: stdin and stderr are terminals. */
bool cordon_cli_can_ask(void);
/* Asks on stderr and returns whether the answer is yes. What was typed before the question is no answer. */
bool cordon_cli_confirm(const char *question);
/* Prints text that was escaped before (base/text.h). On a terminal it is broken between columns, and every line begins with the indent:
 * so no part of it can pass for a line of ours. Elsewhere it is one line without indent. */
void cordon_cli_wrap(FILE *out, const char *indent, const char *text);

#endif
