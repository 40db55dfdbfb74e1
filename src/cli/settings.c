/* SPDX-License-Identifier: Apache-2.0 */
/* The option for each setting that messages of the library name. */
#include "base/setting.h"
#include "cli/cli.h"

static const char *const options[CORDON_SETTING__MAX] = {
	[CORDON_SETTING_ROOT] = "--root",
	[CORDON_SETTING_AT] = "--at",
	[CORDON_SETTING_RW] = "--rw",
	[CORDON_SETTING_RO] = "--ro",
	[CORDON_SETTING_DENY] = "--deny",
	[CORDON_SETTING_PROTECT] = "--protect",
	[CORDON_SETTING_UNPROTECT] = "--unprotect",
	[CORDON_SETTING_NO_DEFAULT_PROTECT] = "--no-default-protect",
	[CORDON_SETTING_HOME] = "--home",
	[CORDON_SETTING_SHARE] = "--share",
	[CORDON_SETTING_NET] = "--net",
	[CORDON_SETTING_NET_NONE] = "--net none",
	[CORDON_SETTING_LENS_ALWAYS] = "--lens always",
	[CORDON_SETTING_LENS_NEVER] = "--lens never",
	[CORDON_SETTING_MEMORY] = "--memory",
	[CORDON_SETTING_PIDS] = "--pids",
	[CORDON_SETTING_CPUS] = "--cpus",
	[CORDON_SETTING_TIMEOUT] = "--timeout",
	[CORDON_SETTING_TMP_SIZE] = "--tmp-size",
	[CORDON_SETTING_BEST_EFFORT] = "--best-effort",
	[CORDON_SETTING_GIT] = "--git",
	[CORDON_SETTING_MAX_SESSIONS] = "cordon project update --max-sessions",
};

void cordon_cli_name_settings(void)
{
	cordon_setting_names(options);
}
