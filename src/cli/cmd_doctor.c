/* SPDX-License-Identifier: Apache-2.0 */
/* cordon doctor: reports what this kernel and user can do and what follows from it, and tests a live sandbox. */
#include <stdio.h>

#include "cli/commands.h"
#include "config/managed.h"
#include "run/doctor.h"

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err; /* This command has the common options only. */
	return 0;
}

static json_t *differs_json(const struct cordon_doctor *d)
{
	json_t *array = json_array();
	char remedy[CORDON_REMEDY_SIZE];

	for (size_t i = 0; i < CORDON_DIFFERENCE__MAX; i++) {
		if (!d->layers.differs[i])
			continue;
		cordon_difference_remedy(&d->layers, (cordon_difference)i, remedy);
		json_array_append_new(array, json_pack("{s:s, s:s}", "what",
						       cordon_difference_text((cordon_difference)i), "use", remedy));
	}
	return array;
}

static void print_machine(const struct cordon_doctor *d)
{
	char remedy[CORDON_REMEDY_SIZE];

	printf("  %-26s %s\n", "tier", cordon_doctor_tier(d));
	if (d->change)
		printf("  %-26s %s\n", "what changes it", d->change);
	for (size_t i = 0; i < CORDON_DIFFERENCE__MAX; i++) {
		if (!d->layers.differs[i])
			continue;
		cordon_difference_remedy(&d->layers, (cordon_difference)i, remedy);
		printf("  %-26s %s; use %s\n", "on this kernel", cordon_difference_text((cordon_difference)i), remedy);
	}
	if (!cordon_streq(d->managed, "none"))
		printf("  %-26s %s%s%s%s%s\n", CORDON_MANAGED_PATH, d->managed, d->managed_error.code ? ": " : "",
		       d->managed_error.where, *d->managed_error.where ? ": " : "", d->managed_error.message);
	/* Most agents need two or three hosts; the default is everything that this machine reaches. */
	if (cordon_streq(d->tier, "full"))
		printf("  %-26s %s\n", "recommended",
		       "--net with the hosts that a program needs, or --net profile: other hosts and this machine's own "
		       "services are then out of reach");
}

static int print_json(const struct cordon_cli *cli, const struct cordon_doctor *d)
{
	json_t *probes = json_array(), *items = json_array(), *fronts = json_array();
	int r;

	for (size_t i = 0; i < CORDON_PROBE__MAX; i++) {
		const struct cordon_probe *p = &d->probes[i];

		json_array_append_new(probes, json_pack("{s:s, s:b, s:s, s:s, s:b, s:s?}", "name", p->name, "ok", p->ok,
							"detail", p->detail, "needed_by", p->needed_by, "required",
							p->required, "fix", p->ok ? NULL : p->fix));
	}
	for (size_t i = 0; i < d->tests.n; i++)
		json_array_append_new(items, json_pack("{s:s, s:b}", "name", d->tests.items[i].name, "ok",
						       d->tests.items[i].ok));
	for (size_t i = 0; i < d->n_ends; i++)
		json_array_append_new(fronts, json_pack("{s:s, s:s, s:s}", "name", d->ends[i].name, "state",
							d->ends[i].state, "why", d->ends[i].why));
	r = cordon_cli_print_json(
		cli,
		json_pack("{s:b, s:b, s:s, s:s?, s:o, s:o, s:o, s:{s:s, s:s, s:s, s:s}, s:{s:b, s:o, s:s}}", "ok",
			  d->ok, "nested", d->nested, "tier", d->tier, "change", d->change, "differs", differs_json(d),
			  "probes", probes, "front_ends", fronts, "managed", "path", CORDON_MANAGED_PATH, "state",
			  d->managed, "where", d->managed_error.where, "error", d->managed_error.message, "self_test",
			  "ok", d->tests.ok, "promises", items, "error", d->error.message));
	return r ? r : d->ok ? CORDON_EXIT_OK : CORDON_EXIT_NO;
}

static void line(bool ok, bool colour, const char *name, const char *detail)
{
	printf("  %s%-7s%s %-24s %s\n", colour ? ok ? "\033[32m" : "\033[31m" : "", ok ? "ok" : "missing",
	       colour ? "\033[0m" : "", name, detail);
}

static int print_text(const struct cordon_doctor *d)
{
	bool colour = cordon_cli_colour(1);

	if (d->nested)
		printf("This is inside a sandbox of cordon, in which no other can be made; it holds every program that runs here.\n"
		       "The following is true of this sandbox, and not of the machine.\n\n");
	printf("what the kernel lets this user do\n");
	for (size_t i = 0; i < CORDON_PROBE__MAX; i++) {
		const struct cordon_probe *p = &d->probes[i];

		line(p->ok, colour, p->name, p->detail);
		if (!p->ok)
			printf("          for %s; %s\n", p->needed_by, p->fix ? p->fix : "");
	}
	printf("\nwhat that means\n");
	print_machine(d);
	for (size_t i = 0; i < d->n_ends; i++)
		printf("  %-26s %s%s%s\n", d->ends[i].name, d->ends[i].state, *d->ends[i].why ? ": " : "",
		       d->ends[i].why);
	printf("\nself-test in a live sandbox\n");
	for (size_t i = 0; i < d->tests.n; i++)
		printf("  %s%-7s%s %s\n", colour ? d->tests.items[i].ok ? "\033[32m" : "\033[31m" : "",
		       d->tests.items[i].ok ? "ok" : "FAILED", colour ? "\033[0m" : "", d->tests.items[i].name);
	if (d->error.code)
		printf("  FAILED  %s\n", d->error.message);
	return d->ok ? CORDON_EXIT_OK : CORDON_EXIT_NO;
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_doctor doctor;
	struct cordon_error err = { 0 };
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	cordon_doctor_examine(true, &doctor);
	return cli->json ? print_json(cli, &doctor) : print_text(&doctor);
}

const struct cordon_command cordon_cmd_doctor = {
	.name = "doctor",
	.operands = "",
	.summary = "report what this machine can enforce, and test it",
	.details = "Tries each kernel feature, says what a missing one means and how to get it, which tier runs have and what differs\n"
		   "from newer kernels, and ends with a live sandbox whose\n"
		   "protections are tried from inside and checked from outside.\n"
		   "\n"
		   "Exit status: 0 runs have all their layers, 1 they do not.\n",
	.options = NULL,
	.run = run,
};
