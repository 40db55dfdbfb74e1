/* SPDX-License-Identifier: Apache-2.0 */
/* cordon doctor: reports what this kernel and user can do and what follows from it, and tests a live sandbox. */
#include <fcntl.h>
#include <stdio.h>

#include "cli/commands.h"
#include "config/settings_file.h"
#include "sandbox/host/nested.h"
#include "sandbox/host/probe.h"
#include "sandbox/host/selftest.h"
#include "sandbox/inside/landlock.h"
#include "sandbox/plan/layers.h"

static int set(void *data, int key, const char *arg, struct cordon_error *err)
{
	(void)data, (void)key, (void)arg, (void)err; /* This command has the common options only. */
	return 0;
}

/* What the probes mean for a user of one front end. */
struct front_end {
	const char *name;
	const char *state; /* "works", "best effort only", "does not work" */
	const char *why;
};

static size_t front_ends(const struct cordon_probe p[static CORDON_PROBE__MAX], bool self_test,
			 struct front_end ret[static 3])
{
	const char *missing = NULL;

	for (size_t i = 0; i < CORDON_PROBE__MAX; i++)
		if (p[i].required && !p[i].ok && !missing)
			missing = p[i].name;
	ret[0] = (struct front_end){ "run, folder scopes", "works", "" };
	if (missing && p[CORDON_PROBE_LANDLOCK].ok && p[CORDON_PROBE_SECCOMP].ok)
		ret[0] = (struct front_end){ "run, folder scopes", "best effort only", missing };
	else if (missing)
		ret[0] = (struct front_end){ "run, folder scopes", "does not work", missing };
	else if (!self_test)
		ret[0] = (struct front_end){ "run, folder scopes", "does not work", "the self-test failed" };
	ret[1] = ret[0];
	ret[1].name = "run, name patterns";
	if (!p[CORDON_PROBE_FUSE].ok)
		ret[1] = (struct front_end){ "run, name patterns", "does not work", "FUSE" };
	ret[2] = (struct front_end){ "limits on the whole tree", "works", "" };
	if (!p[CORDON_PROBE_PIDS].ok)
		ret[2] = (struct front_end){ "limits on the whole tree", "memory and CPUs only", "process limit" };
	return 3;
}

/* Whether the orchestrators of the settings can work: the settings are valid, and each can write its private workspace.
 * Returns how many entries that makes. */
static size_t orchestrators_end(struct front_end *ret, char why[static CORDON_PATH_MAX])
{
	struct cordon_errors errors CORDON_CLEANUP(cordon_errors_done) = { 0 };
	autosettings struct cordon_settings_file *settings = NULL;
	int r = cordon_settings_load(NULL, 0, &settings, &errors);

	*ret = (struct front_end){ "orchestrators", "works", why };
	why[0] = '\0';
	if (r < 0)
		snprintf(why, CORDON_PATH_MAX, "%zu errors in the settings; see 'cordon config validate'",
			 errors.n + errors.dropped);
	for (size_t i = 0; r == 0 && !*why && i < settings->n_orchestrators; i++)
		if (faccessat(AT_FDCWD, settings->orchestrators[i].private_workspace, W_OK | X_OK, AT_EACCESS) < 0 &&
		    errno != ENOENT)
			snprintf(why, CORDON_PATH_MAX, "the private workspace of %s can't be written: %s",
				 settings->orchestrators[i].id, strerror(errno));
	if (*why)
		ret->state = "does not work";
	return r < 0 || settings->n_orchestrators ? 1 : 0;
}

/* How much of a sandbox this machine lets a run have, and what differs in any run or session. */
struct machine {
	const char *tier;   /* "full", "landlock" (the lower one), "none" */
	const char *change; /* the line that gives it all layers, or NULL */
	struct cordon_layers layers;
};

static void find_machine(const struct cordon_probe p[static CORDON_PROBE__MAX], struct machine *ret)
{
	bool lower = p[CORDON_PROBE_LANDLOCK].ok && p[CORDON_PROBE_SECCOMP].ok;
	bool full = lower && p[CORDON_PROBE_NAMESPACES].ok && p[CORDON_PROBE_MOUNT_API].ok;
	struct cordon_layers_spec spec = { .tier = p[CORDON_PROBE_NAMESPACES].ok ? CORDON_TIER_FULL
										 : CORDON_TIER_LANDLOCK,
					   .best_effort = true,
					   .enterable = true,
					   .landlock_abi = cordon_landlock_abi() };

	*ret = (struct machine){ .tier = full ? "full" : lower ? "landlock" : "none" };
	for (size_t i = 0; i < CORDON_PROBE__MAX && !ret->change; i++)
		if (p[i].required && !p[i].ok)
			ret->change = p[i].fix;
	cordon_layers_choose(&spec, &ret->layers, NULL); /* with best effort it refuses nothing */
}

static json_t *differs_json(const struct machine *machine)
{
	json_t *array = json_array();
	char remedy[CORDON_REMEDY_SIZE];

	for (size_t i = 0; i < CORDON_DIFFERENCE__MAX; i++) {
		if (!machine->layers.differs[i])
			continue;
		cordon_difference_remedy((cordon_difference)i, remedy);
		json_array_append_new(array, json_pack("{s:s, s:s}", "what",
						       cordon_difference_text((cordon_difference)i), "use", remedy));
	}
	return array;
}

static void print_machine(const struct machine *machine)
{
	char remedy[CORDON_REMEDY_SIZE];

	printf("  %-26s %s\n", "tier", machine->tier[0] == 'l' ? "lower (Landlock and seccomp only)" : machine->tier);
	if (machine->change)
		printf("  %-26s %s\n", "what changes it", machine->change);
	for (size_t i = 0; i < CORDON_DIFFERENCE__MAX; i++) {
		if (!machine->layers.differs[i])
			continue;
		cordon_difference_remedy((cordon_difference)i, remedy);
		printf("  %-26s %s; use %s\n", "on this kernel", cordon_difference_text((cordon_difference)i), remedy);
	}
	/* Most agents need two or three hosts; the default is everything that this machine reaches. */
	if (machine->tier[0] == 'f')
		printf("  %-26s %s\n", "recommended",
		       "--net with the hosts that a program needs, or --net profile: other hosts and this machine's own "
		       "services are then out of reach");
}

static int print_json(const struct cordon_cli *cli, const struct cordon_probe *p, const struct cordon_selftests *tests,
		      const struct cordon_error *err, const struct machine *machine, const struct front_end *ends,
		      size_t n, bool ok)
{
	json_t *probes = json_array(), *items = json_array(), *fronts = json_array();
	int r;

	for (size_t i = 0; i < CORDON_PROBE__MAX; i++)
		json_array_append_new(probes, json_pack("{s:s, s:b, s:s, s:s, s:b, s:s?}", "name", p[i].name, "ok",
							p[i].ok, "detail", p[i].detail, "needed_by", p[i].needed_by,
							"required", p[i].required, "fix", p[i].ok ? NULL : p[i].fix));
	for (size_t i = 0; i < tests->n; i++)
		json_array_append_new(items,
				      json_pack("{s:s, s:b}", "name", tests->items[i].name, "ok", tests->items[i].ok));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(fronts, json_pack("{s:s, s:s, s:s}", "name", ends[i].name, "state", ends[i].state,
							"why", ends[i].why));
	r = cordon_cli_print_json(cli,
				  json_pack("{s:b, s:b, s:s, s:s?, s:o, s:o, s:o, s:{s:b, s:o, s:s}}", "ok", ok,
					    "nested", cordon_nested(), "tier", machine->tier, "change", machine->change,
					    "differs", differs_json(machine), "probes", probes, "front_ends", fronts,
					    "self_test", "ok", tests->ok, "promises", items, "error", err->message));
	return r ? r : ok ? CORDON_EXIT_OK : CORDON_EXIT_NO;
}

static void line(bool ok, bool colour, const char *name, const char *detail)
{
	printf("  %s%-7s%s %-24s %s\n", colour ? ok ? "\033[32m" : "\033[31m" : "", ok ? "ok" : "missing",
	       colour ? "\033[0m" : "", name, detail);
}

static int run(struct cordon_cli *cli, int argc, char **argv)
{
	struct cordon_probe p[CORDON_PROBE__MAX];
	struct cordon_selftests tests = { 0 };
	char why[CORDON_PATH_MAX];
	struct front_end ends[4];
	struct machine machine;
	struct cordon_error err = { 0 };
	bool colour = cordon_cli_colour(1);
	bool ok = true;
	size_t n;
	int first, r = cordon_cli_parse(cli, argc, argv, 0, set, NULL, &first, &err);

	if (r != 0)
		return r > 0 ? CORDON_EXIT_OK : cordon_cli_fail(cli, &err);
	if (first < argc)
		return cordon_cli_usage(cli, "unexpected argument: %s", argv[first]);
	cordon_probe_all(p);
	for (size_t i = 0; i < CORDON_PROBE__MAX; i++)
		ok &= p[i].ok || !p[i].required;
	ok &= cordon_selftest_run(&tests, &err) == 0 && tests.ok;
	n = front_ends(p, tests.ok, ends);
	n += orchestrators_end(&ends[n], why);
	find_machine(p, &machine);
	if (cli->json)
		return print_json(cli, p, &tests, &err, &machine, ends, n, ok);
	if (cordon_nested())
		printf("This is inside a sandbox of cordon, in which no other can be made; it holds every program that runs here.\n"
		       "The following is true of this sandbox, and not of the machine.\n\n");
	printf("what the kernel lets this user do\n");
	for (size_t i = 0; i < CORDON_PROBE__MAX; i++) {
		line(p[i].ok, colour, p[i].name, p[i].detail);
		if (!p[i].ok)
			printf("          for %s; %s\n", p[i].needed_by, p[i].fix ? p[i].fix : "");
	}
	printf("\nwhat that means\n");
	print_machine(&machine);
	for (size_t i = 0; i < n; i++)
		printf("  %-26s %s%s%s\n", ends[i].name, ends[i].state, *ends[i].why ? ": " : "", ends[i].why);
	printf("\nself-test in a live sandbox\n");
	for (size_t i = 0; i < tests.n; i++)
		printf("  %s%-7s%s %s\n", colour ? tests.items[i].ok ? "\033[32m" : "\033[31m" : "",
		       tests.items[i].ok ? "ok" : "FAILED", colour ? "\033[0m" : "", tests.items[i].name);
	if (err.code)
		printf("  FAILED  %s\n", err.message);
	return ok ? CORDON_EXIT_OK : CORDON_EXIT_NO;
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
