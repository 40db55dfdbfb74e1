#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command lines of claude-loop: all arguments and variables go to `cordon loop`, which does the work.
set -eu

# The script may be a link: what counts is where it lies. Installed it is PREFIX/share/cordon/compat/claude-loop.sh, and in the
# source tree compat/claude-loop.sh beside build/.
here=$(dirname -- "$(readlink -f -- "$0")")
cordon=cordon
for candidate in "${CORDON:-}" "$here/../../../bin/cordon" "$here/../build/cordon"; do
	if [ -n "$candidate" ] && [ -f "$candidate" ] && [ -x "$candidate" ]; then
		cordon=$candidate
		break
	fi
done

exec "$cordon" loop "$@"
