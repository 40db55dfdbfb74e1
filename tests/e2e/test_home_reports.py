# SPDX-License-Identifier: Apache-2.0
"""What is reported of the user's home, which a run does not see: a secret that is asked for, and settings that are shown read-only."""


def test_asking_for_a_key_of_the_user_by_its_name_in_the_home_is_reported(box, cordon):
    key = box.write("home/.ssh/id_ed25519", "a key", mode=0o600)
    box.write("home/.bashrc", "# settings")
    script = "cat ~/.bashrc; cat ~/.ssh/id_ed25519; mkdir ~/.ssh && echo mine > ~/.ssh/id_ed25519 && cat ~/.ssh/id_ed25519 ~/.netrc"
    done = cordon("run", "--workspace-mode", "strict", "--", "sh", "-c", script, cwd=box.mkdir("ws"))
    assert done.stdout == "mine\n" and key.read_text() == "a key", str(done)
    assert done.stderr.count("BLOCKED") == 1 and f"File: {key}\n[WORKSPACE]   Operation: read" in done.stderr, str(done)


def test_changing_settings_that_a_private_directory_shows_read_only_is_reported(box, cordon):
    settings = box.write("home/.config/tool/settings.json", "{}")
    box.write("state/profiles/tool.yaml", "version: 1\nshare: [~/.config/tool/settings.json:ro]\nprivate: [~/.config/tool]\nstate: [~/.tool]\n")
    script = "cd ~/.config/tool && echo made > own && cat own settings.json; echo planted >> settings.json"
    done = cordon("run", "--profile", "tool", "--", "sh", "-c", script, cwd=box.mkdir("ws"))
    assert done.stdout == "made\n{}" and settings.read_text() == "{}" and not settings.with_name("own").exists(), str(done)
    assert done.stderr.count("BLOCKED") == 1 and f"File: {settings}\n[WORKSPACE]   Operation: write" in done.stderr, str(done)
