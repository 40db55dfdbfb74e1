#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The workspace manager of claude-loop, as a command and as a library of shell functions. All of it is done by cordon.
#
#   ./lib/workspace-manager.sh validate "lib,src"
#
#   . ./lib/workspace-manager.sh      (set WORKSPACE_MANAGER to its path where cordon is not on your PATH)
#   init_workspace "lib,src" strict
#   validate_file_access src/main.ts write || exit 1

# Installed it is PREFIX/share/cordon/compat/lib/workspace-manager.sh, and in the source tree compat/lib/workspace-manager.sh.
workspace_cordon() {
	workspace_here=$(dirname -- "$(readlink -f -- "${WORKSPACE_MANAGER:-$0}")")
	for workspace_candidate in "${CORDON:-}" "$workspace_here/../../../../bin/cordon" "$workspace_here/../../build/cordon"; do
		if [ -n "$workspace_candidate" ] && [ -f "$workspace_candidate" ] && [ -x "$workspace_candidate" ]; then
			"$workspace_candidate" "$@"
			return
		fi
	done
	cordon "$@"
}

# init_workspace FOLDERS [MODE] [ROOT]: remembers the workspace in the variables that everything else reads, and validates it.
init_workspace() {
	WORKSPACE_FOLDERS=$1
	WORKSPACE_MODE=${2:-${WORKSPACE_MODE:-permissive}}
	export WORKSPACE_FOLDERS WORKSPACE_MODE
	if [ -n "${3:-}" ]; then
		WORKSPACE_REPO_ROOT=$3
		export WORKSPACE_REPO_ROOT
	fi
	workspace_cordon validate
}

# validate_workspace_folders [FOLDERS]
validate_workspace_folders() {
	workspace_cordon validate "$@"
}

# is_file_in_workspace FILE [FOLDERS]: 0 inside, 1 outside; prints nothing.
is_file_in_workspace() {
	workspace_cordon check-file --quiet "$@"
}

# validate_file_access FILE [read|write]: warns in permissive mode; in strict mode it fails, too.
validate_file_access() {
	workspace_cordon check-file --op "${2:-write}" "$1" && return 0
	[ $? -eq 1 ] && [ "${WORKSPACE_MODE:-permissive}" = permissive ]
}

# infer_file_scope_from_workspace [FOLDERS]
infer_file_scope_from_workspace() {
	workspace_cordon infer-scope "$@"
}

# mount_workspace_in_worker DIR [FOLDERS]
mount_workspace_in_worker() {
	if [ $# -gt 1 ]; then
		workspace_cordon mount "$2" "$1"
	else
		workspace_cordon mount "$1"
	fi
}

# get_workspace_prompt_section [FOLDERS] [MODE]
get_workspace_prompt_section() {
	workspace_cordon prompt-section "$@"
}

workspace_main() {
	case ${1:-} in
	validate | check-file | infer-scope | update-prd | mount | unmount | prompt-section)
		workspace_cordon "$@"
		;;
	*)
		echo "usage: workspace-manager.sh validate|check-file|infer-scope|update-prd|mount|unmount|prompt-section ..." >&2
		return 2
		;;
	esac
}

# A shell that sources the file has another name, and only wants the functions.
case ${0##*/} in
workspace-manager.sh) workspace_main "$@" ;;
esac
