/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the store, and judges ids before any path is made of them. */
#include "base/child.h"
#include "state/kinds.h"
#include "store/internal.h"

int cordon_store_open(struct cordon_store *ret_store, struct cordon_error *err)
{
	autostore struct cordon_store store = CORDON_STORE_NONE;
	size_t repaired;
	int r = cordon_home_open(&store.home, err);

	if (r == 0)
		r = cordon_state_dir(store.home.state_fd, cordon_state_kinds[CORDON_STATE_KIND_PROJECTS].dir,
				     &store.projects_fd, err);
	if (r == 0)
		r = cordon_state_dir(store.home.state_fd, cordon_state_kinds[CORDON_STATE_KIND_SESSIONS].dir,
				     &store.sessions_fd, err);
	if (r == 0)
		r = cordon_state_dir(store.home.state_fd, cordon_state_kinds[CORDON_STATE_KIND_STAGING].dir,
				     &store.staging_fd, err);
	if (r == 0)
		r = cordon_state_dir(store.home.fd, "projects", &store.trees_fd, err);
	if (r < 0)
		return r;
	store.order = cordon_store_order_new();
	/* If the repair fails, `cordon gc` reports it. The store can be used all the same. */
	cordon_store_repair(&store, &repaired, NULL);
	*ret_store = store;
	store = (struct cordon_store)CORDON_STORE_NONE;
	return 0;
}

void cordon_store_done(struct cordon_store *store)
{
	store->order = cordon_store_order_free(store->order);
	cordon_closep(&store->projects_fd);
	cordon_closep(&store->sessions_fd);
	cordon_closep(&store->staging_fd);
	cordon_closep(&store->trees_fd);
	cordon_home_done(&store->home);
}

pid_t cordon_store_fork(const struct cordon_store *store, int fd, bool reads)
{
	const int kept[] = { fd,
			     store->home.fd,
			     store->home.state_fd,
			     store->projects_fd,
			     store->sessions_fd,
			     store->staging_fd,
			     store->trees_fd };

	return cordon_child_fork(&(struct cordon_fork){ .kept = kept,
							.n_kept = CORDON_ARRAY_SIZE(kept),
							.own_session = !reads,
							.seconds = reads ? CORDON_STORE_READ_SECONDS : 0,
							.memory_bytes = reads ? CORDON_STORE_READ_MEMORY : 0 });
}

/* Copies the text and makes it lower case; -EINVAL when it has other characters than letters, digits and '-', or the
 * wrong length. */
static int copy_lower(const char *text, size_t max, char ret_id[static CORDON_ID_SIZE])
{
	char id[CORDON_ID_SIZE];
	size_t n;

	for (n = 0; text[n]; n++) {
		char c = text[n];

		if (n == max)
			return -EINVAL;
		if (c >= 'A' && c <= 'Z')
			c = (char)(c + ('a' - 'A'));
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
			return -EINVAL;
		id[n] = c;
	}
	return n == 0 ? -EINVAL : cordon_copy(ret_id, CORDON_ID_SIZE, id, n);
}

int cordon_id_uuid(const char *what, const char *text, char ret_id[static CORDON_ID_SIZE], struct cordon_error *err)
{
	char id[CORDON_ID_SIZE];

	/* The message has only the first 80 bytes of the text, which may be very long. */
	if (copy_lower(text, CORDON_UUID_SIZE - 1, id) < 0 || !cordon_uuid_valid(id))
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s is not a UUID: %.80s", what, text);
	return cordon_copy(ret_id, CORDON_ID_SIZE, id, strlen(id));
}

int cordon_id_workspace(const char *what, const char *text, char ret_id[static CORDON_ID_SIZE], struct cordon_error *err)
{
	/* On a command line, an id that begins with a dash would be an option. */
	if (*text == '-' || copy_lower(text, CORDON_ID_SIZE - 1, ret_id) < 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE,
				   "%s is 1 to 64 of a-z, 0-9 and '-', not '-' first, not: %.80s", what, text);
	return 0;
}
