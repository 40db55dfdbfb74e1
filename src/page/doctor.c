/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the machine, as `cordon doctor` finds it. */
#include "run/doctor.h"
#include "page/internal.h"

static const char *summary(const struct cordon_doctor *d)
{
	return d->ok				   ? "Runs have all their layers."
	       : cordon_streq(d->tier, "none")	   ? "No run can be held: this machine lets cordon enforce nothing."
	       : cordon_streq(d->tier, "landlock") ? "Runs have the lower tier only: Landlock and seccomp."
						   : "Something that a run needs is missing or does not work.";
}

void cordon_page_machine(struct cordon_page *page)
{
	struct cordon_doctor doctor;

	cordon_doctor_examine(false, &doctor);
	cordon_html(&page->html,
		    "<p class=\"%s\">%s <a href=\"/doctor\">What this machine can enforce, tested in a live sandbox</a></p>",
		    doctor.ok ? "" : "alert", summary(&doctor));
}

static void probes_section(struct cordon_page *page, const struct cordon_doctor *d)
{
	struct cordon_html *html = &page->html;

	cordon_html(html,
		    "<section id=\"kernel\"><h2>What the kernel lets this user do</h2><table class=\"stack\"><thead><tr>"
		    "<th scope=\"col\">Feature</th><th scope=\"col\">State</th><th scope=\"col\">Detail</th>"
		    "<th scope=\"col\">What uses it</th></tr></thead><tbody>");
	for (size_t i = 0; i < CORDON_PROBE__MAX; i++) {
		const struct cordon_probe *p = &d->probes[i];

		cordon_html(html, "<tr><td data-label=\"Feature\">%s</td><td data-label=\"State\">", p->name);
		cordon_page_state(page, p->ok ? "ok" : "missing");
		cordon_html(html, "</td><td data-label=\"Detail\">%s", p->detail);
		if (!p->ok && p->fix)
			cordon_html(html, "; %s", p->fix);
		cordon_html(html, "</td><td data-label=\"What uses it\">%s</td></tr>", p->needed_by);
	}
	cordon_html(html, "</tbody></table></section>");
}

static void meaning_section(struct cordon_page *page, const struct cordon_doctor *d)
{
	struct cordon_html *html = &page->html;
	char remedy[CORDON_REMEDY_SIZE];

	cordon_html(html, "<section id=\"meaning\"><h2>What that means</h2><dl><dt>Tier</dt><dd>%s</dd>",
		    cordon_doctor_tier(d));
	if (d->change)
		cordon_html(html, "<dt>What changes it</dt><dd>%s</dd>", d->change);
	for (size_t i = 0; i < CORDON_DIFFERENCE__MAX; i++) {
		if (!d->layers.differs[i])
			continue;
		cordon_difference_remedy(&d->layers, (cordon_difference)i, remedy);
		cordon_html(html, "<dt>On this kernel</dt><dd>%s; use %s</dd>",
			    cordon_difference_text((cordon_difference)i), remedy);
	}
	for (size_t i = 0; i < d->n_ends; i++)
		cordon_html(html, "<dt>%s</dt><dd>%s%s%s</dd>", d->ends[i].name, d->ends[i].state,
			    *d->ends[i].why ? ": " : "", d->ends[i].why);
	cordon_html(html, "</dl></section>");
}

static void tests_section(struct cordon_page *page, const struct cordon_doctor *d)
{
	struct cordon_html *html = &page->html;

	cordon_html(html, "<section id=\"self-test\"><h2>Self-test in a live sandbox</h2>");
	if (d->error.code)
		cordon_html(html, "<p class=\"alert\">%s</p>", d->error.message);
	cordon_html(html, "<ul>");
	for (size_t i = 0; i < d->tests.n; i++) {
		cordon_html(html, "<li>");
		cordon_page_state(page, d->tests.items[i].ok ? "ok" : "failed");
		cordon_html(html, " %s</li>", d->tests.items[i].name);
	}
	cordon_html(html, "</ul></section>");
}

void cordon_page_doctor(struct cordon_page *page)
{
	struct cordon_doctor doctor;

	cordon_page_begin(page, "This machine", NULL);
	cordon_page_flush(page);
	cordon_doctor_examine(true, &doctor);
	cordon_html(&page->html, "<p class=\"%s\">%s</p>", doctor.ok ? "done" : "alert", summary(&doctor));
	if (doctor.nested)
		cordon_html(&page->html,
			    "<p class=\"warn\">This server runs inside a sandbox of cordon, in which no other can "
			    "be made. The following is true of this sandbox, and not of the machine.</p>");
	meaning_section(page, &doctor);
	probes_section(page, &doctor);
	tests_section(page, &doctor);
}
