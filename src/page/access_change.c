/* SPDX-License-Identifier: Apache-2.0 */
/* One cell of the matrix: who may use an area, who holds it now, granting and revoking. */
#include "flow/edit.h"
#include "flow/flow.h"
#include "page/access.h"

struct cell {
	struct cordon_page *page;
	struct cordon_settings_file *settings;
	const struct cordon_orchestrator *orchestrator;
	const struct cordon_shared_area *area;
	const struct cordon_area_grant *grant; /* or NULL */
};

/* Finds what the request names, or fails. */
static bool find(struct cell *c, const char *orchestrator, const char *area)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_error err = { 0 };

	if (cordon_settings_load(NULL, CORDON_SETTINGS_TEXT_ONLY, &c->settings, &errors) < 0)
		cordon_errors_first(&errors, &err);
	else if (cordon_settings_orchestrator(c->settings, orchestrator ? orchestrator : "", &c->orchestrator, &err) ==
			 0 &&
		 cordon_settings_area(c->settings, area ? area : "", &c->area, &err) == 0)
		c->grant = cordon_orchestrator_grant(c->orchestrator, c->area->key);
	if (err.code)
		cordon_page_fail_error(c->page, &err);
	return !err.code;
}

static void facts(struct cell *c)
{
	struct cordon_html *html = &c->page->html;
	bool any = false;

	cordon_html(html,
		    "<section id=\"facts\"><h2>What it is about</h2><dl><dt>Orchestrator</dt><dd>%s</dd><dt>Area</dt><dd>%s</dd>",
		    c->orchestrator->id, c->area->key);
	cordon_html(html, "<dt>Directory of the host</dt><dd><code>%s</code></dd><dt>What it is for</dt><dd>%s</dd>",
		    c->area->path, c->area->description);
	cordon_html(html, "<dt>Domain of the area</dt><dd>%s</dd><dt>Domains of the orchestrator</dt><dd>",
		    c->area->domain ? c->area->domain : "none");
	for (size_t i = 0; i < c->settings->n_profiles; i++) {
		const struct cordon_channel_profile *profile = &c->settings->profiles[i];

		if (profile->orchestrator != c->orchestrator || !profile->domain)
			continue;
		cordon_html(html, "%s%s (channel profile %s)", any ? ", " : "", profile->domain, profile->id);
		any = true;
	}
	cordon_html(html, "%s</dd><dt>Access now</dt><dd>", any ? "" : "none");
	cordon_page_access_word(c->page, c->settings, c->orchestrator, c->area);
	cordon_html(html, "</dd></dl></section>");
}

/* The steps that have the area mounted, which a change of the settings does not take away by itself. */
static void holders(struct cell *c)
{
	struct cordon_html *html = &c->page->html;
	struct cordon_error err = { 0 };
	json_auto_t *list = NULL;
	json_t *holder;
	size_t i;

	cordon_html(html, "<section id=\"holders\"><h2>Who holds it now</h2>");
	if (cordon_flow_end_holders(&c->page->store->home, c->orchestrator->id, c->area->key, true, &list, &err) < 0) {
		cordon_html(html, "<p class=\"alert\">%s</p>", err.message);
	} else if (!json_array_size(list)) {
		cordon_page_empty(c->page, "No step of a workflow.");
	} else {
		cordon_html(html, "<ul>");
		json_array_foreach(list, i, holder) {
			cordon_html(html, "<li>step <code>%s</code> (attempt %lld) of the run ",
				    cordon_page_string(holder, "step"),
				    (long long)json_integer_value(json_object_get(holder, "attempt")));
			cordon_html(html, "<a href=\"/workflow/%s\">%s</a></li>", cordon_page_string(holder, "run_id"),
				    cordon_page_string(holder, "run_id"));
		}
		cordon_html(html, "</ul>");
	}
	cordon_html(html,
		    "<p class=\"quiet\">Commands of 'cordon orchestrator run' may hold it too. They are not listed, "
		    "and end like the steps.</p></section>");
}

static void begin_form(struct cell *c, const char *action)
{
	cordon_page_form(c->page, "/access/change", action);
	cordon_html(&c->page->html,
		    "<input type=\"hidden\" name=\"orchestrator\" value=\"%s\"><input type=\"hidden\" name=\"area\" value=\"%s\">",
		    c->orchestrator->id, c->area->key);
}

static void grant_form(struct cell *c)
{
	struct cordon_html *html = &c->page->html;
	bool crosses = cordon_settings_crosses(c->settings, c->orchestrator, c->area);

	cordon_html(html, "<section id=\"grant\"><h2>%s</h2>", c->grant ? "Grant more or less" : "Grant");
	cordon_html(html, "<p>It holds for all agents of %s, from their next step on.%s</p>", c->orchestrator->id,
		    c->grant && !c->grant->read_only ? " Steps that may write to it now are ended." : "");
	begin_form(c, "grant");
	if (crosses)
		cordon_html(html,
			    "<label class=\"inline\"><input type=\"checkbox\" name=\"cross\" value=\"yes\"> The area belongs to "
			    "another domain than the orchestrator, and it shall have it all the same</label>");
	if (!c->grant || !c->grant->read_only)
		cordon_html(html, "<button name=\"access\" value=\"ro\">%s</button>",
			    c->grant ? "Let it only read from now on" : "Let it read the area");
	if (!c->grant || c->grant->read_only)
		cordon_html(html, "<button name=\"access\" value=\"rw\">%s</button>",
			    c->grant ? "Let it write as well" : "Let it read and write the area");
	cordon_html(html, "</form></section>");
}

static void revoke_form(struct cell *c)
{
	struct cordon_html *html = &c->page->html;

	cordon_html(html,
		    "<section id=\"revoke\"><h2>Revoke</h2><p>Steps that start from now on do not see the area.</p>");
	begin_form(c, "revoke");
	cordon_html(html,
		    "<fieldset><legend>What holds it now</legend>"
		    "<label class=\"inline\"><input type=\"radio\" name=\"keep\" value=\"no\" checked> ends after its grace "
		    "time</label> <label class=\"inline\"><input type=\"radio\" name=\"keep\" value=\"yes\"> goes on until it "
		    "ends by itself</label></fieldset>");
	cordon_html(html, "<button class=\"danger\">Revoke %s from %s</button></form></section>", c->area->key,
		    c->orchestrator->id);
}

static void render(struct cell *c, const struct cordon_errors *errors)
{
	struct cordon_html *html = &c->page->html;

	cordon_page_begin(c->page, "Change access", "flow audit");
	for (size_t i = 0; errors && i < errors->n; i++) {
		cordon_html(html, "<div class=\"alert\" role=\"alert\"><p>That did not work: %s.</p>",
			    errors->items[i].message);
		cordon_html(html, "<p>%s%s</p></div>", *errors->items[i].hint ? "What to do: " : "",
			    errors->items[i].hint);
	}
	facts(c);
	holders(c);
	grant_form(c);
	if (c->grant)
		revoke_form(c);
	cordon_html(html, "<p><a href=\"/access\">All access</a></p>");
}

void cordon_page_access_change(struct cordon_page *page)
{
	struct cell c = { .page = page };

	if (find(&c, cordon_page_arg(page, "orchestrator"), cordon_page_arg(page, "area")))
		render(&c, NULL);
	cordon_settings_free(c.settings);
}

static bool field_is(const struct cordon_page *page, const char *name, const char *value)
{
	const char *given = cordon_page_field(page, name);

	return given && cordon_streq(given, value);
}

/* Makes the change; the page shows the cell again, as it is then. */
static void change(struct cell *c, const struct cordon_settings_edit *edit, const char *done)
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	struct cordon_settings_edited edited autoedited = { 0 };
	struct cordon_page *page = c->page;
	struct cordon_error err = { 0 };
	json_auto_t *ended = NULL;
	char about[2 * CORDON_SETTINGS_ID_MAX + 2];
	int r = cordon_settings_change(&page->store->home, edit, &edited, &ended, &errors);

	cordon_errors_first(&errors, &err);
	cordon_concat(about, sizeof(about), edit->id, " ", edit->key, (char *)NULL);
	cordon_page_audit(page, edit->kind == CORDON_EDIT_GRANT ? "shared_grant" : "shared_revoke", NULL, about,
			  r < 0 ? &err : NULL);
	if (r == 0) {
		cordon_page_redirect(page, done, "/access/change?orchestrator=%s&area=%s", edit->id, edit->key);
		return;
	}
	page->answer->status = cordon_page_status_of(&err);
	render(c, &errors);
}

void cordon_page_access_do(struct cordon_page *page)
{
	struct cell c = { .page = page };
	struct cordon_settings_edit edit = { .kind = CORDON_EDIT_REVOKE, .keep_running = field_is(page, "keep", "yes") };
	const char *done = edit.keep_running ? "revoked-kept" : "revoked";
	struct cordon_error err = { 0 };

	if (!find(&c, cordon_page_field(page, "orchestrator"), cordon_page_field(page, "area")))
		goto out;
	edit.id = c.orchestrator->id;
	edit.key = c.area->key;
	if (cordon_page_does(page, "grant")) {
		edit = (struct cordon_settings_edit){ .kind = CORDON_EDIT_GRANT,
						      .id = edit.id,
						      .key = edit.key,
						      .read_only = field_is(page, "access", "ro"),
						      .cross_domain = field_is(page, "cross", "yes") };
		done = "granted";
	}
	/* INVARIANT: a form that does not say which access it grants grants none. */
	if ((cordon_page_does(page, "grant") && (edit.read_only || field_is(page, "access", "rw"))) ||
	    cordon_page_does(page, "revoke")) {
		change(&c, &edit, done);
	} else {
		cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "The form does not say what to do");
		cordon_page_fail_error(page, &err);
	}
out:
	cordon_settings_free(c.settings);
}
