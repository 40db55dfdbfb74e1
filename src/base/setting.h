/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of settings in messages. The library knows a setting by its key in a policy file; a user of the command
 * line knows it as an option, and a user of MCP as a field of a project. So messages take the name from here, and a
 * front end says once, at its start, how its users write it.
 */
#ifndef CORDON_BASE_SETTING_H
#define CORDON_BASE_SETTING_H

typedef enum cordon_setting_key {
	CORDON_SETTING_ROOT,
	CORDON_SETTING_AT,
	CORDON_SETTING_RW,
	CORDON_SETTING_RO,
	CORDON_SETTING_DENY,
	CORDON_SETTING_PROTECT,
	CORDON_SETTING_UNPROTECT,
	CORDON_SETTING_NO_DEFAULT_PROTECT,
	CORDON_SETTING_HOME,
	CORDON_SETTING_SHARE,
	CORDON_SETTING_NET,
	CORDON_SETTING_NET_NONE,
	CORDON_SETTING_LENS_ALWAYS,
	CORDON_SETTING_LENS_NEVER,
	CORDON_SETTING_MEMORY,
	CORDON_SETTING_PIDS,
	CORDON_SETTING_CPUS,
	CORDON_SETTING_TIMEOUT,
	CORDON_SETTING_TMP_SIZE,
	CORDON_SETTING_BEST_EFFORT,
	CORDON_SETTING_GIT,
	CORDON_SETTING_MAX_SESSIONS, /* of a project */
	CORDON_SETTING__MAX
} cordon_setting;

/* `rw`, or the name that the front end uses: `--rw`. */
const char *cordon_setting_name(cordon_setting setting);

/* Sets how the user of this process writes each setting; NULL keeps the key. The names are not copied. Must be
 * called before anything else runs, because there is no lock. */
void cordon_setting_names(const char *const names[static CORDON_SETTING__MAX]);

#endif
