/* SPDX-License-Identifier: Apache-2.0 */
/* Has ssh-keygen sign and verify. It runs on the host, as the person who called cordon, with their environment: it may need
 * their agent, and ask for a passphrase. */
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "attest/attest.h"
#include "base/child.h"
#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "config/profile.h"
#include "policy/shares.h"

#define PROGRAM "ssh-keygen"
#define OUTPUT_MAX ((size_t)64 << 10)
#define SIGN_MS ((uint64_t)300 * 1000) /* a person may have to type a passphrase, or touch a key */
#define OTHER_MS ((uint64_t)30 * 1000)
#define PRINCIPALS_MAX 16
#define COLUMNS 70 /* of the text of a signature */
#define BEGIN "-----BEGIN SSH SIGNATURE-----\n"
#define END "-----END SSH SIGNATURE-----\n"

static int find_program(const char *root, char ret[static CORDON_PATH_MAX], struct cordon_error *err)
{
	const char *path = getenv("PATH");

	if (cordon_program_on_path(PROGRAM, path ? path : "/usr/bin:/bin", root, ret))
		return 0;
	cordon_fail(err, -ENOENT, CORDON_KIND_NOT_FOUND, "ssh-keygen is not installed");
	cordon_error_hint(err, "it is in the package openssh-client");
	return -ENOENT;
}

static int make_memfd(const char *bytes, size_t n)
{
	int fd = memfd_create(PROGRAM, MFD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = cordon_write_all(fd, bytes, n);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

struct call {
	const char *program;
	const char *const *argv;
	const char *input;
	size_t n_input;
	int kept; /* a descriptor that it gets with the same number, or -1 */
	uint64_t timeout_ms;
};

static int read_end(int fd, struct cordon_buf *ret)
{
	ret->max = OUTPUT_MAX;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : cordon_read_fd(fd, PROGRAM, ret, NULL);
}

/* Runs it. *ret_status is its exit status; `ret_text` the last line of what it said. */
static int run(const struct call *call, struct cordon_buf *ret_out, struct cordon_buf *ret_text, int *ret_status,
	       struct cordon_error *err)
{
	autofd int in = make_memfd(call->input ? call->input : "", call->n_input), out = make_memfd("", 0),
		   text = make_memfd("", 0);
	int status = 0, r;
	pid_t pid;

	if (in < 0 || out < 0 || text < 0)
		return cordon_fail_errno(err, -EMFILE, "cannot run ssh-keygen");
	pid = cordon_child_fork(
		&(struct cordon_fork){ .streams = (const int[]){ in, out, text }, .plain_signals = true });
	if (pid == 0) {
		if (call->kept < 0 || fcntl(call->kept, F_SETFD, 0) == 0)
			execve(call->program, (char *const *)(uintptr_t)call->argv, environ);
		_exit(127);
	}
	r = pid < 0 ? (int)pid : cordon_child_await(pid, call->timeout_ms, &status);
	if (r == 0)
		r = read_end(out, ret_out);
	if (r == 0)
		r = read_end(text, ret_text);
	if (r < 0)
		return cordon_fail_errno(err, r, "ssh-keygen");
	while (ret_text->len && ret_text->data[ret_text->len - 1] == '\n')
		ret_text->data[--ret_text->len] = '\0';
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}

static const char *last_line(const struct cordon_buf *text)
{
	const char *line = text->len ? strrchr(text->data, '\n') : NULL;

	return !text->len ? "it said nothing" : line ? line + 1 : text->data;
}

/* ---- the key ---- */

/* Whether the run could replace the file: it lies in the root, or in a share that can be written. */
static bool is_writable_inside(const struct cordon_policy *policy, const char *path)
{
	bool inside = cordon_path_within(path, policy->root.path);

	for (size_t i = 0; !inside && i < policy->n_shares; i++)
		inside = !policy->shares[i].read_only && policy->shares[i].source &&
			 cordon_path_within(path, policy->shares[i].source);
	return inside;
}

int cordon_attest_key_open(const char *path, const struct cordon_policy *policy, struct cordon_attest_key *ret_key,
			   struct cordon_error *err)
{
	struct cordon_attest_key key = { 0 };
	autobuf struct cordon_buf out = { 0 }, text = { 0 };
	autofree char *real = realpath(path, NULL);
	const char *argv[] = { PROGRAM, "-l", "-f", key.path, NULL };
	struct call call = { .program = key.program, .argv = argv, .kept = -1, .timeout_ms = OTHER_MS };
	int status = 0, r;

	if (!real)
		return cordon_fail_errno(err, -errno, "cannot open the key %s", path);
	if (is_writable_inside(policy, real)) {
		cordon_fail(err, -EPERM, CORDON_KIND_POLICY_DENIED, "the key %s lies where the run can write", path);
		cordon_error_hint(err, "use one outside the root, such as ~/.ssh/id_ed25519");
		return -EPERM;
	}
	if (cordon_copy(key.path, sizeof(key.path), real, strlen(real)) < 0)
		return cordon_fail_errno(err, -ENAMETOOLONG, "%s", path);
	if ((r = find_program(policy->root.path, key.program, err)) < 0 ||
	    (r = run(&call, &out, &text, &status, err)) < 0)
		return r;
	if (status != 0)
		return cordon_fail(err, -EINVAL, CORDON_KIND_USAGE, "%s is no key of ssh: %s", path, last_line(&text));
	cordon_text_escape_fixed(key.shown, sizeof(key.shown), out.len ? out.data : "",
				 out.len ? strcspn(out.data, "\n") : 0);
	*ret_key = key;
	return 0;
}

/* ---- signatures ---- */

int cordon_attest_sign(const struct cordon_attest_key *key, const char *text, size_t n,
		       struct cordon_buf *ret_signature, struct cordon_error *err)
{
	const char *argv[] = { PROGRAM, "-Y", "sign", "-n", CORDON_ATTEST_NAMESPACE, "-f", key->path, NULL };
	struct call call = {
		.program = key->program, .argv = argv, .input = text, .n_input = n, .kept = -1, .timeout_ms = SIGN_MS
	};
	autobuf struct cordon_buf out = { 0 }, said = { 0 };
	int status = 0, r = run(&call, &out, &said, &status, err);

	if (r < 0)
		return r;
	if (status != 0 || !cordon_attest_armored(out.len ? out.data : "", out.len))
		return cordon_fail(err, -EIO, CORDON_KIND_IO, "ssh-keygen could not sign: %s", last_line(&said));
	return cordon_buf_add(ret_signature, out.data, out.len) < 0 ? cordon_fail_errno(err, -ENOMEM, "signature") : 0;
}

/* ssh-keygen ignores white space in the text. Then several texts are the same signature, and a change would go unseen. */
bool cordon_attest_armored(const char *signature, size_t n)
{
	const int variant = sodium_base64_VARIANT_ORIGINAL;
	autobuf struct cordon_buf bytes = CORDON_BUF(OUTPUT_MAX), again = CORDON_BUF(2 * OUTPUT_MAX);
	size_t begin = strlen(BEGIN), end = strlen(END), n_bytes = 0, n_text;
	autofree char *text = NULL;

	if (n < begin + end || n > OUTPUT_MAX || memcmp(signature, BEGIN, begin) != 0 ||
	    memcmp(signature + n - end, END, end) != 0)
		return false;
	text = malloc(2 * OUTPUT_MAX);
	if (!text || cordon_buf_add(&bytes, signature, n) < 0 ||
	    sodium_base642bin((unsigned char *)bytes.data, bytes.len, signature + begin, n - begin - end, "\n",
			      &n_bytes, NULL, variant) < 0)
		return false;
	n_text = sodium_base64_encoded_len(n_bytes, variant) - 1;
	sodium_bin2base64(text, 2 * OUTPUT_MAX, (const unsigned char *)bytes.data, n_bytes, variant);
	if (cordon_buf_adds(&again, BEGIN) < 0)
		return false;
	for (size_t i = 0; i < n_text; i += COLUMNS)
		if (cordon_buf_add(&again, text + i, n_text - i < COLUMNS ? n_text - i : COLUMNS) < 0 ||
		    cordon_buf_addc(&again, '\n') < 0)
			return false;
	return cordon_buf_adds(&again, END) == 0 && again.len == n && memcmp(again.data, signature, n) == 0;
}

/* Asks whether this principal made it. */
static int judge_one(struct call *call, const char *signers, const char *file, const char *who,
		     struct cordon_buf *ret_said, int *ret_status, struct cordon_error *err)
{
	const char *argv[] = { PROGRAM, "-Y", "verify", "-n", CORDON_ATTEST_NAMESPACE, "-f", signers, "-I",
			       who,	"-s", file,	NULL };
	autobuf struct cordon_buf out = { 0 };

	call->argv = argv;
	cordon_buf_reset(ret_said);
	return run(call, &out, ret_said, ret_status, err);
}

int cordon_attest_judge(const char *root, const char *signers, const char *text, size_t n, const char *signature,
			size_t n_signature, struct cordon_buf *ret_who, struct cordon_error *err)
{
	autofd int fd = make_memfd(signature, n_signature);
	autobuf struct cordon_buf principals = { 0 }, said = { 0 };
	char program[CORDON_PATH_MAX], file[64];
	const char *find[] = { PROGRAM, "-Y", "find-principals", "-f", signers, "-s", file, NULL };
	struct call call = { .program = program, .argv = find, .kept = fd, .timeout_ms = OTHER_MS };
	int status = 0, tried = 0, r;

	if (access(signers, R_OK) < 0)
		return cordon_fail_errno(err, -errno, "cannot read the file of allowed signers %s", signers);
	if (fd < 0 || snprintf(file, sizeof(file), "/proc/self/fd/%d", fd) < 0)
		return cordon_fail_errno(err, -EMFILE, "signature");
	if ((r = find_program(root, program, err)) < 0 || (r = run(&call, &principals, &said, &status, err)) < 0)
		return r;
	if (status != 0)
		return cordon_fail(err, -EBADMSG, CORDON_KIND_POLICY_DENIED,
				   "%s names nobody with the key that signed it", signers);
	call.input = text;
	call.n_input = n;
	for (char *who = principals.data, *next; who && *who && tried++ < PRINCIPALS_MAX; who = next) {
		size_t length = strcspn(who, "\n");

		next = who + length + (who[length] == '\n');
		who[length] = '\0';
		/* A name that begins so would be taken for an option. */
		if (*who == '-')
			continue;
		if ((r = judge_one(&call, signers, file, who, &said, &status, err)) < 0)
			return r;
		if (status == 0)
			return cordon_text_escape(ret_who, who, length) < 0
				       ? cordon_fail_errno(err, -ENOMEM, "signature")
				       : 0;
	}
	return cordon_fail(err, -EBADMSG, CORDON_KIND_POLICY_DENIED, "%s", last_line(&said));
}
