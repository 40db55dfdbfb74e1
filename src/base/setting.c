/* SPDX-License-Identifier: Apache-2.0 */
/* The names of settings in messages: the keys of the policy file, or the names that a front end set. */
#include <stddef.h>

#include "base/setting.h"

static const char *const keys[CORDON_SETTING__MAX] = {
	[CORDON_SETTING_ROOT] = "root",
	[CORDON_SETTING_AT] = "at",
	[CORDON_SETTING_RW] = "rw",
	[CORDON_SETTING_RO] = "ro",
	[CORDON_SETTING_DENY] = "deny",
	[CORDON_SETTING_PROTECT] = "protect",
	[CORDON_SETTING_UNPROTECT] = "unprotect",
	[CORDON_SETTING_NO_DEFAULT_PROTECT] = "default_protect: false",
	[CORDON_SETTING_HOME] = "home",
	[CORDON_SETTING_SHARE] = "share",
	[CORDON_SETTING_NET] = "net",
	[CORDON_SETTING_NET_NONE] = "net: none",
	[CORDON_SETTING_LENS_ALWAYS] = "lens: always",
	[CORDON_SETTING_LENS_NEVER] = "lens: never",
	[CORDON_SETTING_MEMORY] = "limits.memory",
	[CORDON_SETTING_PIDS] = "limits.pids",
	[CORDON_SETTING_CPUS] = "limits.cpus",
	[CORDON_SETTING_TIMEOUT] = "limits.timeout",
	[CORDON_SETTING_TMP_SIZE] = "limits.tmp_size",
	[CORDON_SETTING_BEST_EFFORT] = "best_effort",
	[CORDON_SETTING_GIT] = "git",
	[CORDON_SETTING_MAX_SESSIONS] = "max_sessions",
};

static const char *const *current = keys;

const char *cordon_setting_name(cordon_setting setting)
{
	return current[setting] ? current[setting] : keys[setting];
}

void cordon_setting_names(const char *const names[static CORDON_SETTING__MAX])
{
	current = names;
}
