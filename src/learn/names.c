/* SPDX-License-Identifier: Apache-2.0 */
/* What a name shows: whether it is a secret, the type of a file, and whether a part of it is random. */
#include <fnmatch.h>
#include <stdio.h>

#include "base/path.h"
#include "learn/names.h"
#include "policy/temp_names.h"

static const struct {
	const char *pattern; /* of one component */
	const char *sort;    /* NULL: not a secret, although a row below matches */
} secrets[] = {
	{ ".env.example", NULL },
	{ ".env.sample", NULL },
	{ ".env.template", NULL },
	{ ".env", "environment file" },
	{ ".env.*", "environment file" },
	{ "*.env", "environment file" },
	{ ".ssh", "SSH keys" },
	{ "id_rsa", "private key" },
	{ "id_dsa", "private key" },
	{ "id_ecdsa", "private key" },
	{ "id_ed25519", "private key" },
	{ "*.pem", "private key" },
	{ "*.key", "private key" },
	{ "*.p12", "private key" },
	{ "*.pfx", "private key" },
	{ "*.jks", "key store" },
	{ "*.keystore", "key store" },
	{ "*.kdbx", "password store" },
	{ ".password-store", "password store" },
	{ ".gnupg", "GnuPG keys" },
	{ ".aws", "cloud credentials" },
	{ ".azure", "cloud credentials" },
	{ ".gcloud", "cloud credentials" },
	{ ".kube", "cluster credentials" },
	{ ".git-credentials", "git credentials" },
	{ ".netrc", "network credentials" },
	{ "_netrc", "network credentials" },
	{ ".npmrc", "registry credentials" },
	{ ".pypirc", "registry credentials" },
	{ ".pgpass", "database credentials" },
	{ "credentials", "credentials" },
	{ "credentials.json", "credentials" },
	{ "credentials.y*ml", "credentials" },
	{ "secrets", "secrets" },
	{ "secrets.json", "secrets" },
	{ "secrets.y*ml", "secrets" },
	{ "secrets.toml", "secrets" },
	{ ".secrets", "secrets" },
};

/* Names that are secrets in a home directory, and may be anything elsewhere. */
static const char *const home_secrets[] = {
	"*_history",	  ".lesshst",	   ".viminfo",	   ".docker",	  ".mozilla",	   ".thunderbird", ".var",
	".vault-token",	  ".my.cnf",	   ".mylogin.cnf", ".s3cfg",	  ".boto",	   ".oci",	   ".fly",
	".databrickscfg", ".snowflake",	   ".terraformrc", ".Xauthority", ".ICEauthority", ".claude.json", ".wget-hsts",
	".authinfo",	  ".authinfo.gpg", ".pki",	   ".rhosts",	  ".msmtprc",	   ".fetchmailrc", ".mbsyncrc",
};

/* The same for paths further down. */
static const char *const home_places[] = {
	".cargo/credentials",
	".cargo/credentials.toml",
	".gem/credentials",
	".m2/settings.xml",
	".gradle/gradle.properties",
	".terraform.d",
	".claude/.credentials.json",
	".codex/auth.json",
	".gemini/oauth_creds.json",
	".local/share/opencode/auth.json",
	".config/gh",
	".config/glab-cli",
	".config/hub",
	".config/git/credentials",
	".config/gcloud",
	".config/op",
	".config/rclone",
	".config/sops",
	".config/age",
	".config/containers",
	".config/github-copilot",
	".config/doctl",
	".config/heroku",
	".config/pypoetry",
	".config/google-chrome",
	".config/chromium",
	".config/BraveSoftware",
	".config/microsoft-edge",
	".config/vivaldi",
	".config/opera",
	".config/Signal",
	".config/Slack",
	".config/discord",
	".config/Bitwarden",
	".config/keepassxc",
	".config/evolution",
	".local/share/keyrings",
	".local/share/kwalletd",
	".local/share/evolution",
	".local/share/fish/fish_history",
	".local/share/pass",
	".local/share/atuin",
	".local/share/containers",
	".local/share/TelegramDesktop",
	".cache/keyring",
	"snap/firefox",
	"snap/chromium",
	NULL,
};

static const char *secret_component(const char *name)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(secrets); i++)
		if (fnmatch(secrets[i].pattern, name, FNM_CASEFOLD | FNM_NOESCAPE) == 0)
			return secrets[i].sort;
	return NULL;
}

const char *cordon_learn_secret(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");
		char name[256];
		const char *sort = cordon_copy(name, sizeof(name), path, n) < 0 ? NULL : secret_component(name);

		if (sort)
			return sort;
		path += n + (path[n] == '/');
	}
	return NULL;
}

bool cordon_learn_secret_in_home(const char *name)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(home_secrets); i++)
		if (fnmatch(home_secrets[i], name, FNM_NOESCAPE) == 0)
			return true;
	return secret_component(name) != NULL;
}

const char *const *cordon_learn_secret_places(void)
{
	return home_places;
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

const char *cordon_learn_type(const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t n = 0;

	if (!dot || dot == name || !dot[1])
		return NULL;
	while (is_alnum(dot[1 + n]))
		n++;
	return dot[1 + n] || n > 12 ? NULL : dot + 1;
}

/* Whether s has six or more letters and digits of at least two kinds, as mkstemp() and similar functions make them.
 * Only capitals or only digits count as well; only small letters may be a word. */
static bool random_run(const char *s, size_t n)
{
	bool lower = false, upper = false, digit = false;

	for (size_t i = 0; i < n; i++) {
		lower |= s[i] >= 'a' && s[i] <= 'z';
		upper |= s[i] >= 'A' && s[i] <= 'Z';
		digit |= s[i] >= '0' && s[i] <= '9';
	}
	return n >= 6 && (!lower || upper || digit);
}

bool cordon_learn_random(const char *name, size_t *ret_from, size_t *ret_to)
{
	size_t fixed = cordon_temp_fixed(name);

	if (fixed) {
		*ret_from = fixed;
		*ret_to = strlen(name);
		return true;
	}
	for (size_t i = 0; name[i];) {
		size_t n = 0, keep = 0;

		while (is_alnum(name[i + n]) || (n && name[i + n] == '_'))
			n++;
		if (random_run(name + i, n)) {
			/* At the start there may be a short fixed word before it: "sedAbCdEf", "tmpx1y2z3". */
			while (i == 0 && keep < 3 && name[keep] >= 'a' && name[keep] <= 'z')
				keep++;
			*ret_from = i + keep;
			*ret_to = i + n;
			return true;
		}
		i += n ? n : 1;
	}
	return false;
}
