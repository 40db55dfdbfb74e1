#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An agent as a plain script: counts the files below a directory, as far as its scope shows them.
set -eu
echo "$(find "$1" -type f | wc -l) files"
