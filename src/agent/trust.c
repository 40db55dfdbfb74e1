/* SPDX-License-Identifier: Apache-2.0 */
/* Trust in a file of agents. A record is named by the hash of the path, and holds the path and the hash of the content. */
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>

#include "agent/trust.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "base/time.h"

#define TRUST_DIR "trust"
#define RECORD_MAX 16384

/* The root is a part of the key, because it decides what the scopes of the file mean. */
static void key_of(const struct cordon_agents *agents, char ret[static CORDON_DIGEST_SIZE])
{
	unsigned char sum[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state;

	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(&state, (const unsigned char *)agents->root.path, strlen(agents->root.path) + 1);
	crypto_hash_sha256_update(&state, (const unsigned char *)agents->path, strlen(agents->path));
	crypto_hash_sha256_final(&state, sum);
	sodium_bin2hex(ret, CORDON_DIGEST_SIZE, sum, sizeof(sum));
}

bool cordon_agents_trusted(const struct cordon_agents *agents)
{
	autobuf struct cordon_buf text = CORDON_BUF(RECORD_MAX);
	autohome struct cordon_home home = CORDON_HOME_NONE;
	char key[CORDON_DIGEST_SIZE];
	autofd int dir = -1;
	json_t *record;
	bool trusted;

	key_of(agents, key);
	if (cordon_home_open(&home, NULL) < 0 || cordon_home_subdir(&home, TRUST_DIR, &dir, NULL) < 0 ||
	    cordon_read_file(dir, key, O_NOFOLLOW, &text, NULL) < 0)
		return false;
	record = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, NULL);
	trusted = cordon_json_is(record, "sha256", agents->hash);
	json_decref(record);
	return trusted;
}

int cordon_agents_trust(struct cordon_agents *agents, bool trust, struct cordon_error *err)
{
	autohome struct cordon_home home = CORDON_HOME_NONE;
	autobuf struct cordon_buf path = CORDON_BUF(4 * CORDON_PATH_MAX);
	char key[CORDON_DIGEST_SIZE], now[CORDON_TIME_SIZE];
	autofree char *text = NULL;
	autofd int dir = -1;
	json_t *record;
	int r = cordon_home_open(&home, err);

	if (r == 0)
		r = cordon_home_subdir(&home, TRUST_DIR, &dir, err);
	if (r < 0)
		return r;
	key_of(agents, key);
	if (!trust) {
		if (unlinkat(dir, key, 0) < 0 && errno != ENOENT)
			return cordon_fail_errno(err, -errno, "cannot remove the record of trust");
		agents->trusted = false;
		return 0;
	}
	cordon_time_format(cordon_time_now(), now);
	if (cordon_text_escape(&path, agents->path, strlen(agents->path)) < 0)
		return cordon_fail_errno(err, -ENOMEM, "cannot record trust");
	record = json_pack("{s:i, s:s, s:s, s:s}", "version", 1, "path", path.data, "sha256", agents->hash,
			   "trusted_at", now);
	text = record ? json_dumps(record, JSON_COMPACT) : NULL;
	json_decref(record);
	if (!text)
		return cordon_fail_errno(err, -ENOMEM, "cannot record trust");
	r = cordon_write_file(dir, key, 0600, text, strlen(text), err);
	agents->trusted |= r == 0;
	return r;
}
