# SPDX-License-Identifier: Apache-2.0
"""Safer defaults: a home directory is no workspace by accident, and known secrets stay out of reach."""
import json
import os

import pytest

SECRETS = {
    ".ssh/id_ed25519": "key", ".aws/credentials": "aws", ".netrc": "netrc", ".gnupg/private": "gpg", ".config/gcloud/token": "gcloud",
    ".kube/config": "kube", ".docker/config.json": "docker", ".npmrc": "npm", ".pypirc": "pypi", ".git-credentials": "git",
    ".config/gh/hosts.yml": "gh", ".password-store/x.gpg": "pass", ".local/share/keyrings/login": "ring", ".mozilla/firefox/p/key4.db": "ff",
    ".config/google-chrome/Default/Cookies": "chrome", ".bash_history": "typed", ".odd_history": "typed", "server.key": "tls",
}  # fmt: skip
PLAIN = {"notes.txt": "notes", ".config/editor.toml": "editor", ".local/share/app/data": "data", "project/main.c": "main"}


@pytest.fixture
def home(box):
    """The caller's home, with secrets and with things that are none."""
    for name, text in {**SECRETS, **PLAIN}.items():
        box.write(f"home/{name}", text)
    return box.home


def words(base, names):
    return " ".join(f"'{os.path.join(base, name)}'" for name in names)


def read_all(cordon, *options, base="", cwd=None):
    """What a run could read of all files, by name; and the result."""
    script = f"for f in {words(base, [*SECRETS, *PLAIN])}; do cat \"$f\" 2>/dev/null && echo \" $f\"; done; true"
    result = cordon("run", *options, "--", "sh", "-c", script, cwd=cwd)
    assert result.returncode == 0, result
    return {line.split(" ")[1].removeprefix(base).lstrip("/") for line in result.stdout.splitlines()}, result


def test_a_home_directory_is_no_root_unless_somebody_says_so(box, cordon, home):
    box.mkdir("home/plain")
    box.repo("home/repo")
    for command in (["run", "--", "cat", "notes.txt"], ["why", "notes.txt"], ["tree"]):
        result = cordon(*command, cwd=home)
        assert result.returncode != 0 and result.stdout == "", result
        assert result.stderr == f"cordon: nobody named the root, and it would be {home}, which is your home directory or contains it; " \
                                f"change to a project, or say so with --root {home}\n", result
    for cwd in (box.path, "/"):  # above the home, and the whole machine
        result = cordon("run", "--", "true", cwd=cwd)
        assert result.returncode == 125 and f"it would be {cwd}, which is your home directory or contains it" in result.stderr, result
    assert cordon("run", "--root", "/", "--", "true", cwd=home).returncode == 125
    # A repository of which the home is the top level, as people have for their settings, is the same.
    box.repo("home")
    result = cordon("run", "--", "true", cwd=home / "plain")
    assert result.returncode == 125 and f"it would be {home}," in result.stderr, result
    # A project in the home is a project, and a named home is one that somebody wants.
    for options, cwd in (([], home / "repo"), (["--root", "plain"], home), (["--root", "."], home)):
        assert cordon("run", *options, "--", "true", cwd=cwd).returncode == 0
    assert cordon("run", "--", "true", cwd=home, env={"WORKSPACE_REPO_ROOT": str(home)}).returncode == 0
    assert cordon("run", "--", "true", cwd=home, env={"HOME": str(box.tmp)}).returncode == 0  # it is not the home of this caller


def test_a_large_toolchain_in_the_home_is_protected_and_refuses_no_run(box, cordon, home):
    """Deep stands for large here, because it is quickly made: the bounds are far beyond what toolchains have."""
    deep = box.write(f"home/.rustup/{'d/' * 40}file", "tool")
    assert box.run("ln", "-s", home / "project/tool", deep.with_name("link")).returncode == 0
    result = cordon("run", "--root", ".", "--", "sh", "-c", f"echo x >{deep}; echo x >project/tool; echo x >project/other", cwd=home)
    assert ".rustup (protected by default)" in result.stderr and "project/tool (a link in .rustup leads here)" in result.stderr, result
    assert deep.read_text() == "tool" and not (home / "project/tool").exists() and (home / "project/other").exists()
    # Beyond a bound nobody can vouch for the rest, and the message says what can be done.
    box.mkdir(f"home/.rustup/{'d/' * 70}")
    result = cordon("run", "--root", ".", "--", "true", cwd=home)
    assert result.returncode == 125 and "protected path .rustup is too large to be searched" in result.stderr, result
    assert "leave it unprotected with --unprotect '.rustup', or choose a root that does not hold it" in result.stderr, result
    assert cordon("run", "--root", ".", "--unprotect", ".rustup", "--", "true", cwd=home).returncode == 0


def test_a_home_that_is_the_root_hides_known_secrets_and_shows_the_rest(box, cordon, home):
    found, result = read_all(cordon, "--root", str(home), cwd=home)
    assert found == set(PLAIN), result
    warning = f"[WORKSPACE] WARNING: the root {home} is or contains your home directory: known secrets in it are hidden, everything else is in reach\n"
    assert result.stderr.startswith(warning) and result.stderr.count("BLOCKED") == len(SECRETS), result
    for name in SECRETS:
        assert f"File: {home / name}\n[WORKSPACE]   Operation: read\n" in result.stderr, result
    # The same above the home, through a link to it, and through a lens.
    found, result = read_all(cordon, "--root", str(box.path), base=str(home), cwd=box.path)
    assert found == set(PLAIN) and "WARNING: the root" in result.stderr, result
    link = box.link("way", "home")
    found, result = read_all(cordon, "--root", str(link), base=str(home), cwd=home)
    assert found == set(PLAIN), result
    found, result = read_all(cordon, "--root", str(home), "--lens", "always", cwd=home)
    assert found == set(PLAIN), result


def test_a_secret_that_does_not_exist_yet_is_hidden_when_the_host_makes_it(box, cordon, home):
    os.rename(home / ".aws", box.path / "aws")
    script = "mkdir .aws; echo ready; read go; cat .aws/credentials; mkdir fresh && echo made"
    process = cordon.start("run", "--root", ".", "--", "sh", "-c", script, cwd=home, stdin=-1)
    while process.stdout.readline() != b"ready\n":
        pass
    os.rename(box.path / "aws", home / ".aws")
    for _ in range(200):
        line = process.stderr.readline()
        if b"host made a denied path" in line:
            break
    assert b"it is hidden from now on" in line, line
    out, err = process.communicate(b"go\n", timeout=30)
    assert out == b"made\n" and b".aws/credentials: Permission denied" in err, (out, err)
    assert (home / ".aws/credentials").read_text() == "aws" and (home / "fresh").is_dir()


def test_a_secret_behind_a_link_is_hidden_under_both_names(box, cordon, home):
    os.rename(home / ".ssh", home / "dot-ssh")
    box.link("home/.ssh", "dot-ssh")
    script = "cat .ssh/id_ed25519 dot-ssh/id_ed25519; rm .ssh || mv .ssh x; cat notes.txt"
    result = cordon("run", "--root", ".", "--", "sh", "-c", script, cwd=home)
    assert result.stdout == "notes", result
    assert os.readlink(home / ".ssh") == "dot-ssh" and (home / "dot-ssh/id_ed25519").read_text() == "key"


def test_one_secret_can_be_shown_by_its_name(box, cordon, home):
    found, result = read_all(cordon, "--root", ".", "--unprotect", ".aws", "--unprotect", ".config/gh", cwd=home)
    assert found == {*PLAIN, ".aws/credentials", ".config/gh/hosts.yml"}, result
    why = cordon("why", "--json", "--root", ".", "--op", "read", ".aws/credentials", cwd=home).json()
    assert "deny" in why.values() and "a known secret" in json.dumps(why), why
    result = cordon("run", "--root", ".", "--unprotect", "notes.txt", "--", "true", cwd=home)
    assert result.returncode != 0 and "notes.txt is not protected by default" in result.stderr, result


def test_deny_secrets_hides_them_in_any_root_and_only_there(box, cordon):
    hidden = {".env": "A=1", ".env.local": "A=2", ".env.odd": "A=3", ".npmrc": "token", ".aws/credentials": "aws", "id_rsa": "key",
              "server.pem": "tls", "secrets.yml": "x", ".config/gh/hosts.yml": "gh"}  # fmt: skip
    shown = {".env.example": "A=", "src/app.env": "B=1", "secrets/readme": "no secret", "main.c": "int main;", "web/.env": "deeper"}
    repo = box.repo(files={**hidden, **shown})
    script = f"for f in {words('', [*hidden, *shown])}; do cat $f >/dev/null 2>&1 && echo $f; done; mkdir .ssh 2>/dev/null && echo made; true"

    def run(*options):
        result = cordon("run", *options, "--", "sh", "-c", script, cwd=repo)
        if (repo / ".ssh").exists():
            (repo / ".ssh").rmdir()
        return set(result.stdout.split()), result

    everything = {*hidden, *shown, "made"}
    assert run()[0] == everything
    found, result = run("--deny-secrets")
    assert found == set(shown) and "home directory" not in result.stderr, result
    box.write("repo/cordon.yaml", "version: 1\ndeny_secrets: true\nunprotect: [.npmrc]\n")
    found, result = run("--policy", "cordon.yaml")
    assert found == {*shown, ".npmrc"}, result
    # Deeper in the tree a pattern is needed, which the lens holds.
    found, result = run("--deny-secrets", "--deny", "**/.env")
    assert found == set(shown) - {"web/.env"}, result
    box.write("repo/cordon.yaml", "version: 1\ndeny_secrets: perhaps\n")
    result = cordon("run", "--policy", "cordon.yaml", "--", "true", cwd=repo)
    assert result.returncode == 125 and "cordon.yaml:2:15" in result.stderr, result


def test_cordons_own_records_stay_out_of_reach_in_any_root(box, cordon, home):
    cordon("run", "--root", str(box.path / "tmp"), "--", "true")
    assert any((box.state / "state").iterdir())
    for options in ([], ["--unprotect", ".ssh"]):
        result = cordon("run", "--root", str(box.path), *options, "--", "sh", "-c", f"ls {box.state}; cat {box.state}/state/audit/*; echo x >{box.state}/x",
                        cwd=box.path)
        assert result.stdout == "" and not (box.state / "x").exists(), result
