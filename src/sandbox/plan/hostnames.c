/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the host's files that say how names of hosts are resolved, so that they fit the run: the run's own host name
 * has an address, and without a network every other name is unknown at once: with a name server that can't be reached,
 * programs would wait for it, or take the failure for one that will pass. With a list of hosts cordon-net is the only
 * one to ask: it answers on port 53 of every address inside.
 */
#include "sandbox/plan/plan.h"

/* Keeps the lines of nsswitch.conf, except the one for hosts. */
static int set_hosts_line(struct cordon_buf *text, const char *line_of_ours)
{
	static const char key[] = "hosts:";
	struct cordon_buf kept = CORDON_BUF(text->max);
	int r = 0;

	for (const char *line = text->data, *next; r == 0 && line && *line; line = next) {
		const char *end = strchr(line, '\n');

		next = end ? end + 1 : line + strlen(line);
		if (strncmp(line + strspn(line, " \t"), key, strlen(key)) != 0)
			r = cordon_buf_add(&kept, line, (size_t)(next - line));
		if (r == 0 && !end)
			r = cordon_buf_addc(&kept, '\n');
	}
	if (r == 0)
		r = cordon_buf_adds(&kept, line_of_ours);
	cordon_buf_done(text);
	*text = kept;
	return r;
}

/* Adds the run's own name, with the address that Debian gives to a host that has no other. */
static int add_own_name(const struct cordon_plan *plan, struct cordon_buf *text)
{
	int r = 0;

	if (!text->len)
		r = cordon_buf_adds(text, "127.0.0.1\tlocalhost\n::1\tlocalhost\n");
	else if (text->data[text->len - 1] != '\n')
		r = cordon_buf_addc(text, '\n');
	return r < 0 ? r : cordon_buf_addf(text, "127.0.1.1\t%s\n", plan->hostname);
}

int cordon_plan_host_names(const struct cordon_plan *plan, const char *name, struct cordon_buf *text)
{
	if (cordon_streq(name, "hosts")) {
		/* An address that stands there would lead past the name, and so past its rule. */
		if (plan->net)
			cordon_buf_done(text);
		return add_own_name(plan, text);
	}
	if (plan->own_network && cordon_streq(name, "nsswitch.conf"))
		return set_hosts_line(text, plan->net ? "hosts: files dns\n" : "hosts: files\n");
	if (plan->net && cordon_streq(name, "resolv.conf")) {
		cordon_buf_done(text);
		return cordon_buf_adds(text, "nameserver 127.0.0.1\n");
	}
	if (plan->net_none && cordon_streq(name, "resolv.conf")) {
		/* Programs that do not read nsswitch.conf ask the loopback, where nobody answers. */
		cordon_buf_done(text);
		return cordon_buf_adds(text, "options timeout:1 attempts:1\n");
	}
	return 0;
}
