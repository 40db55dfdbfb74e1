# SPDX-License-Identifier: Apache-2.0
"""The modes in which an agent is attacked from, and how each of them is entered."""
import subprocess

# In each of them everything in the root may be written, but for boundaries. A session has its settings from its project.
WIDE = {
    "plain": (),
    "strict": ("--rw", ".", "--workspace-mode", "strict"),
    "permissive": ("--rw", ".", "--workspace-mode", "permissive"),
    "view": ("--cow", "--no-summary"),
    "lens": ("--lens", "always"),
    "session": (),
}
RUNS = {mode: options for mode, options in WIDE.items() if mode != "session"}
# Only these folders are the workspace.
NARROW = {
    **WIDE,
    "strict": ("--workspace", "src,.git,deep", "--workspace-mode", "strict"),
    "permissive": ("--workspace", "src,.git,deep", "--workspace-mode", "permissive"),
}
WORKSPACE = "/workspace"  # where a session sees its root


def open_session(box, cordon, fill, *settings):
    """A session that waits for commands: its id and its root, which fill(root) makes."""

    def ask(*words):
        done = cordon(*words[:2], "--json", *words[2:])
        assert done.returncode == 0, done
        return done.json()

    project = ask("project", "create", "attacked", "--isolation", *settings)
    top = box.state / "projects" / project["id"] / "workspaces" / project["default_workspace_id"]
    for path in [*top.iterdir()]:
        subprocess.run(["rm", "-rf", str(path)], check=True)
    fill(top)
    return ask("session", "start", project["id"], "--detach", "--new-session", "--", "sleep", "1000")["session_id"], top
