/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of names that are secrets. */
#include <fnmatch.h>

#include "base/util.h"
#include "protect/secrets.h"

static const struct {
	const char *pattern; /* of one component */
	const char *sort;    /* NULL: not a secret, although a row below matches */
} secrets[] = {
	{ ".env.example", NULL },
	{ ".env.sample", NULL },
	{ ".env.template", NULL },
	{ ".env", "environment file" },
	{ ".env.local", "environment file" },
	{ ".env.development", "environment file" },
	{ ".env.development.local", "environment file" },
	{ ".env.production", "environment file" },
	{ ".env.production.local", "environment file" },
	{ ".env.staging", "environment file" },
	{ ".env.test", "environment file" },
	{ ".env.test.local", "environment file" },
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
	{ "credentials.yml", "credentials" },
	{ "credentials.yaml", "credentials" },
	{ "secrets", "secrets" },
	{ "secrets.json", "secrets" },
	{ "secrets.yml", "secrets" },
	{ "secrets.yaml", "secrets" },
	{ "secrets.toml", "secrets" },
	{ ".secrets", "secrets" },
};

/* Patterns of the table whose names are often something else: `cordon learn` does not grant them, but they are not hidden
 * either. */
static const char *const unsure[] = { "*.env", "credentials", "secrets" };

/* Names that are secrets in a home directory, and may be anything elsewhere. */
static const char *const home_secrets[] = {
	"*_history",	 ".bash_history", ".zsh_history",   ".python_history", ".lesshst",
	".viminfo",	 ".docker",	  ".mozilla",	    ".thunderbird",    ".var",
	".vault-token",	 ".my.cnf",	  ".mylogin.cnf",   ".s3cfg",	       ".boto",
	".oci",		 ".fly",	  ".databrickscfg", ".snowflake",      ".terraformrc",
	".Xauthority",	 ".ICEauthority", ".claude.json",   ".wget-hsts",      ".authinfo",
	".authinfo.gpg", ".pki",	  ".rhosts",	    ".msmtprc",	       ".fetchmailrc",
	".mbsyncrc",
};

/* The same for paths further down. */
static const char *const home_places[] = {
	".docker/config.json",
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

/* Directories and files of the system, outside the homes. Root can read all of them. */
static const char *const system_places[] = {
	"/etc/gshadow",
	"/etc/krb5.keytab",
	"/etc/shadow",
	"/etc/ssh",
	"/etc/ssl/private",
	"/var/backups",
	"/var/lib/NetworkManager",
	"/var/lib/bluetooth",
	"/var/lib/containerd",
	"/var/lib/containers",
	"/var/lib/docker",
	"/var/lib/fprint",
	"/var/lib/kubelet",
	"/var/lib/private",
	"/var/lib/sss",
	"/var/lib/systemd",
	"/var/lib/tpm",
	"/var/mail",
	"/var/spool",
	NULL,
};

static const char *secret_component(const char *name)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(secrets); i++)
		if (fnmatch(secrets[i].pattern, name, FNM_CASEFOLD | FNM_NOESCAPE) == 0)
			return secrets[i].sort;
	return NULL;
}

const char *cordon_secret(const char *path)
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

bool cordon_secret_in_home(const char *name)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(home_secrets); i++)
		if (fnmatch(home_secrets[i], name, FNM_NOESCAPE) == 0)
			return true;
	return secret_component(name) != NULL;
}

const char *const *cordon_secret_places(void)
{
	return home_places;
}

const char *const *cordon_secret_system_places(void)
{
	return system_places;
}

static bool is_literal(const char *pattern)
{
	return !strpbrk(pattern, "*?[");
}

static bool is_unsure(const char *pattern)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(unsure); i++)
		if (cordon_streq(pattern, unsure[i]))
			return true;
	return false;
}

int cordon_secret_names(bool home, int (*fn)(void *data, const char *name), void *data)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < CORDON_ARRAY_SIZE(secrets); i++)
		if (secrets[i].sort && !is_unsure(secrets[i].pattern) && is_literal(secrets[i].pattern))
			r = fn(data, secrets[i].pattern);
	for (size_t i = 0; r == 0 && home && i < CORDON_ARRAY_SIZE(home_secrets); i++)
		if (is_literal(home_secrets[i]))
			r = fn(data, home_secrets[i]);
	return r;
}

bool cordon_secret_is_hidden(const char *name, bool home)
{
	for (size_t i = 0; i < CORDON_ARRAY_SIZE(secrets); i++)
		if (fnmatch(secrets[i].pattern, name, FNM_CASEFOLD | FNM_NOESCAPE) == 0)
			return secrets[i].sort && !is_unsure(secrets[i].pattern);
	return home && cordon_secret_in_home(name);
}
