/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a run on this kernel, chosen from the ABI of its Landlock. */
#include <stdio.h>

#include "base/setting.h"
#include "sandbox/plan/layers.h"

static const struct {
	const char *text, *kernel;
	cordon_setting setting; /* that helps as well, unless `instead` does */
	const char *instead;
} differences[CORDON_DIFFERENCE__MAX] = {
	[CORDON_DIFFERENCE_UNIX_SOCKETS] = { "on the host's network, sockets of the AF_UNIX family are refused (pairs of stream or "
					     "SOCK_SEQPACKET sockets are not)",
					     "Linux 6.12", CORDON_SETTING_NET_NONE, NULL },
	[CORDON_DIFFERENCE_TRUNCATE] = { "without namespaces, truncate(2) is refused", "Linux 6.2", CORDON_SETTING__MAX,
					 "user namespaces" },
	[CORDON_DIFFERENCE_SIGNALS] = { "the agent of a session and the commands that enter it can signal each other",
					"Linux 6.12", CORDON_SETTING__MAX, NULL },
	[CORDON_DIFFERENCE_RENAME] = { "files can't be renamed or linked from one directory to another", "Linux 5.19",
				       CORDON_SETTING__MAX, NULL },
};

const char *cordon_difference_text(cordon_difference difference)
{
	return differences[difference].text;
}

void cordon_difference_remedy(const struct cordon_layers *layers, cordon_difference difference,
			      char ret[static CORDON_REMEDY_SIZE])
{
	cordon_setting setting = differences[difference].setting;
	const char *other = setting < CORDON_SETTING__MAX ? cordon_setting_name(setting)
							  : differences[difference].instead;

	/* There no kernel brings sockets back, and no network of its own can be had. */
	if (layers->lower && difference == CORDON_DIFFERENCE_UNIX_SOCKETS) {
		snprintf(ret, CORDON_REMEDY_SIZE, "user namespaces");
		return;
	}
	snprintf(ret, CORDON_REMEDY_SIZE, "%s%s%s or newer", other ? other : "", other ? ", or " : "",
		 differences[difference].kernel);
}

int cordon_layers_choose(const struct cordon_layers_spec *spec, struct cordon_layers *ret, struct cordon_error *err)
{
	unsigned int abi = spec->landlock_abi;
	bool full = spec->tier == CORDON_TIER_FULL;

	if (abi < CORDON_LANDLOCK_ABI_REQUIRED && !spec->best_effort) {
		if (abi)
			cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED,
				    "this kernel's Landlock (ABI %u) can't allow renames between directories (ABI %d)",
				    abi, CORDON_LANDLOCK_ABI_RENAME);
		else
			cordon_fail(err, -EOPNOTSUPP, CORDON_KIND_KERNEL_UNSUPPORTED, "this kernel has no Landlock");
		cordon_error_hint(err, "use Linux 5.19 or newer with landlock in the lsm= list, or %s",
				  cordon_setting_name(CORDON_SETTING_BEST_EFFORT));
		return -EOPNOTSUPP;
	}
	*ret = (struct cordon_layers){
		.landlock_abi = abi,
		.scopes = abi >= CORDON_LANDLOCK_ABI_SCOPES,
		.scopes_held = abi >= (full ? CORDON_LANDLOCK_ABI_REQUIRED : CORDON_LANDLOCK_ABI_SCOPES),
		.lower = !full,
		.differs = {
			[CORDON_DIFFERENCE_UNIX_SOCKETS] = !full || (abi < CORDON_LANDLOCK_ABI_SCOPES && !spec->own_network),
			/* Elsewhere what may only be read is mounted read-only. */
			[CORDON_DIFFERENCE_TRUNCATE] = abi > 0 && abi < CORDON_LANDLOCK_ABI_TRUNCATE && !full,
			/* Both are in one pid namespace, each in a Landlock domain of its own. */
			[CORDON_DIFFERENCE_SIGNALS] = abi < CORDON_LANDLOCK_ABI_SCOPES && full && spec->enterable,
			[CORDON_DIFFERENCE_RENAME] = abi > 0 && abi < CORDON_LANDLOCK_ABI_RENAME,
		},
	};
	return 0;
}
