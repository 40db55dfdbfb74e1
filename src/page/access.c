/* SPDX-License-Identifier: Apache-2.0 */
/* Access: the matrix of orchestrators and shared areas. access_change.c grants and revokes, access_policy.c shows policies. */
#include "page/access.h"
#include "flow/access_svg.h"

#define ROWS_SHOWN 50
#define COLUMNS_SHOWN 12

/* What is shown of a matrix that may have thousands of rows and columns. */
struct matrix {
	struct cordon_page *page;
	const struct cordon_settings_file *settings;
	const char *rows_with, *columns_with; /* parts of names */
	uint64_t row, column;		      /* the first that is shown, among those that match */
	size_t n_rows, n_columns;	      /* that match */
	const struct cordon_orchestrator *rows[ROWS_SHOWN];
	const struct cordon_shared_area *columns[COLUMNS_SHOWN];
	size_t rows_shown, columns_shown;
};

static const char *arg(const struct cordon_page *page, const char *name)
{
	const char *text = cordon_page_arg(page, name);

	return text ? text : "";
}

static uint64_t number(const struct cordon_page *page, const char *name)
{
	uint64_t n = 0;

	return cordon_parse_u64(arg(page, name), 0, CORDON_SETTINGS_MAX, &n) < 0 ? 0 : n;
}

static void choose(struct matrix *m)
{
	for (size_t i = 0; i < m->settings->n_orchestrators; i++) {
		if (!strcasestr(m->settings->orchestrators[i].id, m->rows_with))
			continue;
		if (m->n_rows++ >= m->row && m->rows_shown < ROWS_SHOWN)
			m->rows[m->rows_shown++] = &m->settings->orchestrators[i];
	}
	for (size_t i = 0; i < m->settings->n_areas; i++) {
		if (!strcasestr(m->settings->areas[i].key, m->columns_with))
			continue;
		if (m->n_columns++ >= m->column && m->columns_shown < COLUMNS_SHOWN)
			m->columns[m->columns_shown++] = &m->settings->areas[i];
	}
}

void cordon_page_settings_errors(struct cordon_page *page, const struct cordon_errors *errors)
{
	if (!errors->n)
		return;
	cordon_html(&page->html, "<div class=\"alert\" role=\"alert\"><p>The settings have errors; nobody is granted "
				 "anything before they are corrected:</p><ul>");
	for (size_t i = 0; i < errors->n; i++) {
		const struct cordon_error *err = &errors->items[i];

		cordon_html(&page->html, "<li>%s%s%s", err->where, *err->where ? ": " : "", err->message);
		cordon_html(&page->html, "%s%s</li>", *err->hint ? "; " : "", err->hint);
	}
	cordon_html(&page->html, "</ul></div>");
}

/* What an orchestrator may do with an area, in words; the class is the colour. */
void cordon_page_access_word(struct cordon_page *page, const struct cordon_settings_file *settings,
			     const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area)
{
	const struct cordon_area_grant *grant = cordon_orchestrator_grant(orchestrator, area->key);

	cordon_html(&page->html, "<span class=\"state %s\">%s</span>",
		    !grant	       ? "quiet"
		    : grant->read_only ? "busy"
				       : "good",
		    !grant	       ? "none"
		    : grant->read_only ? "read"
				       : "read and write");
	if (grant && cordon_settings_crosses(settings, orchestrator, area))
		cordon_html(&page->html, " <span class=\"state wait\">across domains</span>");
}

/* ---- the parts of the page ---- */

static void filter_form(struct matrix *m)
{
	cordon_html(&m->page->html,
		    "<form method=\"get\" action=\"/access\" role=\"search\">"
		    "<label>Orchestrators with <input type=\"search\" name=\"orchestrators\" value=\"%s\"></label>"
		    "<label>Areas with <input type=\"search\" name=\"areas\" value=\"%s\"></label>"
		    "<button>Show</button></form>",
		    m->rows_with, m->columns_with);
}

static void link_to(struct matrix *m, uint64_t row, uint64_t column, const char *text)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, " <a href=\"/access?from=%llu&amp;column=%llu&amp;orchestrators=", (unsigned long long)row,
		    (unsigned long long)column);
	cordon_html_url(html, m->rows_with);
	cordon_html(html, "&amp;areas=");
	cordon_html_url(html, m->columns_with);
	cordon_html(html, "\">%s</a>", text);
}

/* What is left out, and the way to it. */
static void more(struct matrix *m)
{
	struct cordon_html *html = &m->page->html;

	if (m->n_rows <= ROWS_SHOWN && m->n_columns <= COLUMNS_SHOWN && !m->row && !m->column)
		return;
	cordon_html(html, "<p>%zu of %zu orchestrators and %zu of %zu areas are shown.", m->rows_shown, m->n_rows,
		    m->columns_shown, m->n_columns);
	if (m->row)
		link_to(m, m->row > ROWS_SHOWN ? m->row - ROWS_SHOWN : 0, m->column, "Orchestrators before these");
	if (m->row + m->rows_shown < m->n_rows)
		link_to(m, m->row + ROWS_SHOWN, m->column, "Next orchestrators");
	if (m->column)
		link_to(m, m->row, m->column > COLUMNS_SHOWN ? m->column - COLUMNS_SHOWN : 0, "Areas before these");
	if (m->column + m->columns_shown < m->n_columns)
		link_to(m, m->row, m->column + COLUMNS_SHOWN, "Next areas");
	cordon_html(html, "</p>");
}

/* Ids have only letters, digits, "_" and "-", so they may stand in an address as they are. */
static void cell(struct matrix *m, const struct cordon_orchestrator *orchestrator, const struct cordon_shared_area *area)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, "<td data-label=\"%s\">", area->key);
	cordon_page_access_word(m->page, m->settings, orchestrator, area);
	cordon_html(html,
		    " <a href=\"/access/change?orchestrator=%s&amp;area=%s\" aria-label=\"Change %s of %s\">change</a></td>",
		    orchestrator->id, area->key, area->key, orchestrator->id);
}

static void table(struct matrix *m)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Matrix\">"
			  "<table class=\"stack\"><thead><tr><th scope=\"col\">Orchestrator</th>");
	for (size_t k = 0; k < m->columns_shown; k++)
		cordon_html(html, "<th scope=\"col\">%s</th>", m->columns[k]->key);
	cordon_html(html, "</tr></thead><tbody>");
	for (size_t i = 0; i < m->rows_shown; i++) {
		cordon_html(html, "<tr><th scope=\"row\">%s</th>", m->rows[i]->id);
		for (size_t k = 0; k < m->columns_shown; k++)
			cell(m, m->rows[i], m->columns[k]);
		cordon_html(html, "</tr>");
	}
	cordon_html(html, "</tbody></table></div>");
}

static void areas(struct matrix *m)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, "<section id=\"areas\"><h2>Shared areas</h2><table class=\"stack\"><thead><tr>"
			  "<th scope=\"col\">Area</th><th scope=\"col\">Directory</th><th scope=\"col\">Domain</th>"
			  "<th scope=\"col\">What it is for</th></tr></thead><tbody>");
	for (size_t k = 0; k < m->columns_shown; k++) {
		const struct cordon_shared_area *area = m->columns[k];

		cordon_html(html,
			    "<tr><th scope=\"row\">%s</th><td data-label=\"Directory\"><code>%s</code></td>"
			    "<td data-label=\"Domain\">%s</td><td data-label=\"For\">%s</td></tr>",
			    area->key, area->path, area->domain ? area->domain : "none", area->description);
	}
	cordon_html(html, "</tbody></table></section>");
}

static void show(struct matrix *m)
{
	struct cordon_html *html = &m->page->html;

	cordon_html(html, "<section id=\"matrix\"><h2>Orchestrators and shared areas</h2>");
	if (!m->settings->n_orchestrators || !m->settings->n_areas) {
		cordon_page_empty(m->page, "There is nothing to grant: 'cordon orchestrator add' and 'cordon shared add' "
					   "make orchestrators and areas.");
	} else {
		filter_form(m);
		if (m->rows_shown && m->columns_shown)
			table(m);
		else
			cordon_page_empty(m->page, "No orchestrator or no area has such a name.");
		more(m);
		cordon_html(html, "<p><a href=\"/access/picture\" download>The whole matrix as a picture (SVG)</a></p>");
	}
	cordon_html(html, "</section>");
	if (m->columns_shown)
		areas(m);
}

void cordon_page_access(struct cordon_page *page)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	struct matrix m = { .page = page,
			    .rows_with = arg(page, "orchestrators"),
			    .columns_with = arg(page, "areas"),
			    .row = number(page, "from"),
			    .column = number(page, "column") };

	cordon_page_begin(page, "Access", "audit flow");
	cordon_html(&page->html, "<p>What an agent may do with a path or a host: "
				 "<a href=\"/access/policy\">ask a policy</a>.</p>");
	cordon_page_flush(page);
	/* The matrix is shown also when a directory is gone, because what is gone can be revoked. */
	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) < 0 ||
	    cordon_settings_check(settings, &errors) < 0)
		cordon_page_settings_errors(page, &errors);
	if (!settings)
		return;
	m.settings = settings;
	choose(&m);
	show(&m);
}

void cordon_page_access_picture(struct cordon_page *page)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	struct cordon_error err = { 0 };

	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &settings, &errors) < 0) {
		cordon_errors_first(&errors, &err);
		cordon_page_fail_error(page, &err);
		return;
	}
	page->answer->type = "image/svg+xml";
	cordon_copy(page->answer->file, sizeof(page->answer->file), "access.svg", strlen("access.svg"));
	if (cordon_access_svg(settings, &page->html.out) < 0)
		page->html.failed = true;
}
