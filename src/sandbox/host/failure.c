/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor says why a sandbox could not be set up. */
#include "sandbox/host/failure.h"
#include "sandbox/inside/mounts.h"

/* What may be the reason that the kernel makes no overlay; it does not say more than a number. */
static const char *view_hint(int code)
{
	switch (code) {
	case -EINVAL:
		return "overlayfs takes no CORDON_HOME on overlayfs, NFS or FUSE, and no root with other mounts in it";
	case -ELOOP:
		return "CORDON_HOME and the root must lie outside each other";
	case -ENODEV:
	case -EPERM:
		return "the kernel needs overlayfs in user namespaces: Linux 5.11 or later, and the module overlay";
	default:
		return "'cordon doctor' tells what this machine allows";
	}
}

void cordon_failure_describe(const struct cordon_notice *notice, struct cordon_error *err)
{
	bool view = cordon_streq(notice->what, CORDON_MAKE_VIEW) && notice->code != -ESTALE;
	bool kernel = notice->code == -ENOSYS || notice->code == -EOPNOTSUPP || notice->code == -EPERM;

	if (err->code)
		return;
	cordon_fail(err, notice->code, view || kernel ? CORDON_KIND_KERNEL_UNSUPPORTED : CORDON_KIND_IO,
		    "cannot set up the sandbox: %s %s: %s", notice->what, notice->object,
		    notice->code == -ESTALE ? "it was replaced while the run started" : strerror(-notice->code));
	if (view)
		cordon_error_hint(err, "%s", view_hint(notice->code));
	else if (kernel)
		cordon_error_hint(err, "'cordon doctor' tells what this machine allows");
}
