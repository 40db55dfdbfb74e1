/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the person at the terminal, and prints what they must read without cutting any of it. */
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/ask.h"

#define COLUMNS_DEFAULT 80
#define COLUMNS_MIN 20 /* of the text; a narrower screen breaks lines itself */

bool cordon_cli_can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool cordon_cli_confirm(const char *question)
{
	char answer[16] = "";

	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	fprintf(stderr, "%s [y/N] ", question);
	fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin))
		fputc('\n', stderr);
	answer[strcspn(answer, "\r\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

/* How much of the text goes on one line: up to the last blank that fits, or as many characters as fit. */
static size_t line_length(const char *text, size_t columns)
{
	size_t n = cordon_text_fit(text, strlen(text), columns), at = n;

	if (!text[n])
		return n;
	while (at > 0 && text[at] != ' ')
		at--;
	return at > n / 2 ? at : n;
}

void cordon_cli_wrap(FILE *out, const char *indent, const char *text)
{
	struct winsize size = { 0 };
	size_t columns = COLUMNS_DEFAULT, used = strlen(indent);

	if (!isatty(fileno(out))) {
		fprintf(out, "%s\n", text);
		return;
	}
	if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col)
		columns = size.ws_col;
	columns = columns > used + COLUMNS_MIN ? columns - used : COLUMNS_MIN;
	do {
		size_t n = line_length(text, columns);

		fprintf(out, "%s%.*s\n", indent, (int)n, text);
		text += n;
		text += *text == ' ';
	} while (*text);
}
