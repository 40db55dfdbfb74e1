/* SPDX-License-Identifier: Apache-2.0 */
/* What names tell: secrets, types of files, and names that are different every time. */
#include <fnmatch.h>
#include <stdio.h>

#include "base/path.h"
#include "policy/learn_names.h"
#include "policy/temp_names.h"

static const struct {
	const char *pattern; /* of one component */
	const char *sort;    /* NULL: never mind what follows, this one is not */
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

/* A run of six or more letters and digits of at least two sorts, as mkstemp() and its relatives make them. Capitals or
 * digits alone are no word either; small letters alone may well be one. */
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
			/* At the start there may be a short fixed word in front: "sedAbCdEf", "tmpx1y2z3". */
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
