/* SPDX-License-Identifier: Apache-2.0 */
/* The table of pages, and the way from a request to an answer. */
#include <sodium.h>

#include "page/internal.h"

const struct cordon_page_route cordon_page_routes[] = {
	{ "/", "Home", cordon_page_home, NULL },
	{ "/approvals", "Approvals", cordon_page_approvals, cordon_page_approvals_act },
	{ "/sessions", "Sessions", cordon_page_sessions, NULL },
	{ "/session/", NULL, cordon_page_session, cordon_page_session_act },
	{ "/runs", "Agent runs", cordon_page_runs, NULL },
	{ "/run/", NULL, cordon_page_run, cordon_page_run_act },
	{ "/changes", "Changes", cordon_page_changes_list, NULL },
	{ "/changes/", NULL, cordon_page_changes, cordon_page_changes_act },
	{ "/loop", "Loops", cordon_page_loops, NULL },
	{ "/loop/", NULL, cordon_page_loop, cordon_page_loop_act },
	{ "/workflow", "Workflows", cordon_page_workflows, NULL },
	{ "/workflow/", NULL, cordon_page_workflow, cordon_page_workflow_act },
	{ "/access", "Access", cordon_page_access, NULL },
	{ "/access/change", NULL, cordon_page_access_change, cordon_page_access_do },
	{ "/access/picture", NULL, cordon_page_access_picture, NULL },
	{ "/access/policy", NULL, cordon_page_access_policy, NULL },
	{ "/audit", "Audit", cordon_page_audit_log, NULL },
	{ "/audit/check", NULL, cordon_page_audit_check, NULL },
	{ "/audit/export", NULL, cordon_page_audit_export, NULL },
	{ "/performance", "Performance", cordon_page_performance, NULL },
	{ "/doctor", "Machine", cordon_page_doctor, NULL },
	{ 0 },
};

/* Finds the page of a path and splits what stands behind it. */
static const struct cordon_page_route *find(const char *path, const char **ret_id, size_t *ret_id_size,
					    const char **ret_part)
{
	for (const struct cordon_page_route *route = cordon_page_routes; route->path; route++) {
		size_t n = strlen(route->path);
		const char *slash;

		*ret_id = *ret_part = "";
		*ret_id_size = 0;
		if (cordon_streq(path, route->path))
			return n == 1 || route->path[n - 1] != '/' ? route : NULL;
		if (n == 1 || route->path[n - 1] != '/' || strncmp(path, route->path, n) != 0)
			continue;
		slash = strchr(path + n, '/');
		*ret_id = path + n;
		*ret_id_size = slash ? (size_t)(slash - path) - n : strlen(path + n);
		*ret_part = slash ? slash + 1 : "";
		return *ret_id_size > 0 && *ret_id_size < CORDON_ID_SIZE && !strchr(*ret_part, '/') ? route : NULL;
	}
	return NULL;
}

static int status_of(const struct cordon_page_route *route, const char *method)
{
	if (!route)
		return 404;
	return cordon_streq(method, "GET") || (cordon_streq(method, "POST") && route->post) ? 200 : 405;
}

int cordon_page_find(const char *path, const char *method)
{
	const char *id, *part;
	size_t n;

	return status_of(find(path, &id, &n, &part), method);
}

const char *cordon_page_arg(const struct cordon_page *page, const char *name)
{
	return cordon_form_get(&page->query, name);
}

const char *cordon_page_field(const struct cordon_page *page, const char *name)
{
	return cordon_form_get(&page->form, name);
}

size_t cordon_page_number(const struct cordon_page *page, const char *name)
{
	const char *text = cordon_page_arg(page, name);
	uint64_t number = 0;

	return text && cordon_parse_u64(text, 0, UINT32_MAX, &number) == 0 ? (size_t)number : 0;
}

bool cordon_page_does(const struct cordon_page *page, const char *action)
{
	const char *wanted = cordon_page_field(page, "action");

	return wanted && cordon_streq(wanted, action);
}

/* INVARIANT: a form counts only with the token of this login, which no other site can read. */
static bool has_token(const struct cordon_page *page)
{
	const char *given = cordon_page_field(page, "token"), *want = page->request->token;
	size_t n = strlen(want);

	return n > 0 && given && strlen(given) == n && sodium_memcmp(given, want, n) == 0;
}

static void fail(struct cordon_page *page, int status, const char *why, const char *hint)
{
	struct cordon_error err = { 0 };

	cordon_fail(&err, -EINVAL, CORDON_KIND_USAGE, "%s", why);
	if (hint)
		cordon_error_hint(&err, "%s", hint);
	cordon_page_fail(page, status, &err);
}

void cordon_page_not_found(struct cordon_page *page)
{
	fail(page, 404, "There is nothing here", NULL);
}

bool cordon_page_is_refresh(const struct cordon_page *page)
{
	return cordon_page_arg(page, "refresh");
}

static void route(struct cordon_page *page)
{
	const struct cordon_page_request *request = page->request;
	char id[CORDON_ID_SIZE] = "";
	const char *at = "";
	size_t n = 0;
	const struct cordon_page_route *found = find(request->path, &at, &n, &page->part);
	int status = status_of(found, request->method);

	cordon_copy(id, sizeof(id), at, n);
	page->id = id;
	if (status != 200)
		fail(page, status, status == 404 ? "There is nothing here" : "This page takes no form", NULL);
	else if (cordon_form_parse(request->query, strlen(request->query), &page->query) < 0)
		fail(page, 400, "The address is not one that this page makes", NULL);
	else if (cordon_streq(request->method, "GET"))
		found->get(page);
	else if (cordon_form_parse(request->body, request->body_size, &page->form) < 0)
		fail(page, 400, "The form is not one that this page makes", NULL);
	else if (!has_token(page))
		fail(page, 403, "The form does not belong to this login", "load the page again and repeat what you did");
	else
		found->post(page);
	page->id = page->part = ""; /* They were of this function. */
}

void cordon_page_serve(const struct cordon_page_request *request, struct cordon_page_answer *ret_answer)
{
	struct cordon_page page = {
		.request = request,
		.store = request->store,
		.answer = ret_answer,
		.html = { .out = CORDON_BUF(CORDON_PAGE_SIZE_MAX) },
	};

	*ret_answer = (struct cordon_page_answer){ .status = 200, .type = "text/html; charset=utf-8" };
	route(&page);
	if (page.framed)
		cordon_page_end(&page);
	cordon_form_done(&page.query);
	cordon_form_done(&page.form);
	if (page.html.failed) {
		cordon_buf_reset(&page.html.out);
		cordon_buf_adds(&page.html.out, "This page is too large to show.\n");
		ret_answer->status = 500;
		ret_answer->type = "text/plain; charset=utf-8";
	}
	ret_answer->body = page.html.out;
}

void cordon_page_refuse(int status, const char *why, struct cordon_page_answer *ret_answer)
{
	struct cordon_page_request nobody = { .method = "GET", .path = "/", .query = "", .who = "", .token = "" };
	struct cordon_page page = {
		.request = &nobody,
		.answer = ret_answer,
		.html = { .out = CORDON_BUF(CORDON_PAGE_SIZE_MAX) },
		.id = "",
		.part = "",
	};

	*ret_answer = (struct cordon_page_answer){ .status = status, .type = "text/html; charset=utf-8" };
	fail(&page, status, why,
	     status == 401 ? "run 'cordon open' in a terminal; it prints a link that works once" : NULL);
	cordon_page_end(&page);
	ret_answer->body = page.html.out;
}
