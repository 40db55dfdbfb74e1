/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix of orchestrators and shared areas as a picture: one row per orchestrator, one column per area. */
#include "flow/access_svg.h"

#define CELL 34.0  /* width and height of a cell */
#define LETTER 7.3 /* width of a letter of the labels, at most */
#define MARGIN 16
#define LEGEND 54

/* Ids have no characters that XML would take for its own, but domains may. */
static int add_text(struct cordon_buf *out, const char *text)
{
	int r = 0;

	for (; r == 0 && *text; text++) {
		unsigned char c = (unsigned char)*text;

		r = c == '&'   ? cordon_buf_adds(out, "&amp;")
		    : c == '<' ? cordon_buf_adds(out, "&lt;")
		    : c == '>' ? cordon_buf_adds(out, "&gt;")
		    : c == '"' ? cordon_buf_adds(out, "&quot;")
		    : c < 32   ? cordon_buf_addc(out, ' ')
			       : cordon_buf_addc(out, (char)c);
	}
	return r;
}

static size_t longest(const char *id, size_t so_far)
{
	return strlen(id) > so_far ? strlen(id) : so_far;
}

static int add_label(struct cordon_buf *out, double x, double y, bool turned, const char *text, const char *domain)
{
	int r;

	if (turned)
		r = cordon_buf_addf(out, "<text transform=\"translate(%.0f %.0f) rotate(-60)\">", x, y);
	else
		r = cordon_buf_addf(out, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">", x, y);
	if (r == 0)
		r = add_text(out, text);
	if (r == 0 && domain) {
		r = cordon_buf_adds(out, "<title>");
		r = r < 0 ? r : add_text(out, domain);
		r = r < 0 ? r : cordon_buf_adds(out, "</title>");
	}
	return r < 0 ? r : cordon_buf_adds(out, "</text>\n");
}

static int add_cell(struct cordon_buf *out, const struct cordon_settings_file *settings,
		    const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area, double x,
		    double y)
{
	const struct cordon_area_grant *grant = cordon_orchestrator_grant(orchestrator, area->key);
	bool crosses = grant && cordon_settings_crosses(settings, orchestrator, area);
	const char *word = !grant ? "" : grant->read_only ? "ro" : "rw";
	int r = cordon_buf_addf(out, "<rect class=\"%s%s\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\"/>\n",
				grant ? word : "none", crosses ? " cross" : "", x, y, CELL - 2, CELL - 2);

	if (r == 0 && grant)
		r = cordon_buf_addf(out, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">%s%s</text>\n",
				    x + CELL / 2 - 1, y + CELL / 2 + 4, word, crosses ? "!" : "");
	return r;
}

static int add_legend(struct cordon_buf *out, double y)
{
	static const struct {
		const char *class, *text;
	} kinds[] = { { "none", "not there" },
		      { "ro", "read" },
		      { "rw", "read and write" },
		      { "rw cross", "across domains (!)" } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(kinds); i++)
		r = cordon_buf_addf(out,
				    "<rect class=\"%s\" x=\"%zu\" y=\"%.0f\" width=\"14\" height=\"14\"/>"
				    "<text x=\"%zu\" y=\"%.0f\">%s</text>\n",
				    kinds[i].class, MARGIN + i * 135, y, MARGIN + i * 135 + 20, y + 12, kinds[i].text);
	return r;
}

int cordon_access_svg(const struct cordon_settings_file *settings, struct cordon_buf *ret_text)
{
	size_t rows = settings->n_orchestrators, columns = settings->n_areas, left = 0, top = 0;
	double x0, y0, width, height;
	int r;

	for (size_t i = 0; i < rows; i++)
		left = longest(settings->orchestrators[i].id, left);
	for (size_t i = 0; i < columns; i++)
		top = longest(settings->areas[i].key, top);
	x0 = MARGIN + (double)left * LETTER + 8;
	y0 = MARGIN + (double)top * LETTER + 8;
	width = x0 + (double)columns * CELL + (double)top * LETTER / 2 + MARGIN;
	width = width < 580 ? 580 : width;
	height = y0 + (double)rows * CELL + LEGEND;
	r = cordon_buf_addf(ret_text,
			    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
			    "font-family=\"monospace\" font-size=\"12\">\n<title>Who may use which shared area</title>\n"
			    "<style>rect{stroke:#889;stroke-width:1}.none{fill:#fff}.ro{fill:#cfe3f7}.rw{fill:#bfe8c5}"
			    ".cross{stroke:#c22;stroke-width:3}</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\" "
			    "stroke=\"none\"/>\n",
			    width, height);
	for (size_t k = 0; r == 0 && k < columns; k++)
		r = add_label(ret_text, x0 + (double)k * CELL + CELL / 2 + 4, y0 - 6, true, settings->areas[k].key,
			      settings->areas[k].domain);
	for (size_t i = 0; r == 0 && i < rows; i++) {
		double y = y0 + (double)i * CELL;

		r = add_label(ret_text, x0 - 8, y + CELL / 2 + 4, false, settings->orchestrators[i].id, NULL);
		for (size_t k = 0; r == 0 && k < columns; k++)
			r = add_cell(ret_text, settings, &settings->orchestrators[i], &settings->areas[k],
				     x0 + (double)k * CELL, y);
	}
	r = r < 0 ? r : add_legend(ret_text, y0 + (double)rows * CELL + 16);
	return r < 0 ? r : cordon_buf_adds(ret_text, "</svg>\n");
}
