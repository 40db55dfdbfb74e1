# SPDX-License-Identifier: Apache-2.0
"""Paths that settings name: whatever an agent puts in their place, no other object is ever shown.

A person says yes to a directory; an agent, which has the same uid, turns a link, exchanges a parent or makes the directory again. Each
directory has a mark in it, and the proof is the mark that an agent reads at the next start: that of the directory which stood there when the
person said yes, or none.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess

import pytest

from modes import RUNS
from support import poll
from test_start import Flipper, exchange

MARK = "mark"
SECRET = "SECRET\n"
SEED = int(os.environ.get("CORDON_SEED", random.randrange(1 << 30)))


class Kind:
    """One kind of stored path."""

    options = ()  # of the runs in which it is looked at

    def __init__(self, box, cordon):
        self.box, self.cordon = box, cordon
        self.number = 0
        box.mkdir("work")

    def do(self, *args, status=0, **options):
        done = self.cordon(*args, **options)
        assert done.returncode == status, str(done)
        return done

    def yes(self, path):
        """A person says yes; False when that is refused."""
        raise NotImplementedError

    def start(self, path):
        """The result of a start whose agent prints the mark."""
        raise NotImplementedError

    def forget(self):
        """Takes the path out of the settings, where that needs to be done before the next one."""

    def look(self, path):
        """The mark that the agent sees; None when the start is refused, by name: some commands keep where a path has led."""
        done = self.start(path)
        if done.returncode == 0:
            return done.stdout
        assert done.returncode == 125 and done.stdout == "" and str(path.parent.parent) in done.stderr and len(done.stderr.splitlines()) == 1, str(done)
        return None


class ProjectShare(Kind):
    def yes(self, path):
        done = self.cordon("project", "create", "--json", "p", "--no-git", "--share", f"{path}:ro")
        self.project = done.json()["id"] if done.returncode == 0 else None
        return done.returncode == 0

    def start(self, path):
        return self.cordon("session", "start", self.project, "--", "cat", f"{path}/{MARK}")


class ProjectHome(ProjectShare):
    def yes(self, path):
        done = self.cordon("project", "create", "--json", "p", "--no-git", "--home", str(path))
        self.project = done.json()["id"] if done.returncode == 0 else None
        return done.returncode == 0

    def start(self, path):
        return self.cordon("session", "start", self.project, "--", "sh", "-c", f"cat ~/{MARK}")


class Update(ProjectShare):
    """A share that comes by a change of the project."""

    def yes(self, path):
        self.project = self.do("project", "create", "--json", "p", "--no-git").json()["id"]
        return self.cordon("project", "update", self.project, "--share", f"{path}:ro").returncode == 0


class Allowance(ProjectShare):
    def yes(self, path):
        self.project = self.do("project", "create", "--json", "p", "--no-git").json()["id"]
        session = self.do("session", "start", self.project, "--json", "--detach", "--", "cat", f"{path}/{MARK}").json()["session_id"]
        self.cordon("session", "wait", session)
        self.number += 1
        span = ("session", "policy")[self.number % 2]
        return self.cordon("session", "allow", session, "--path", str(path), "--for", span).returncode == 0

    def start(self, path):
        return self.cordon("session", "start", self.project)


class Area(Kind):
    def yes(self, path):
        self.number += 1
        self.name = f"n{self.number}"
        if self.cordon("shared", "add", self.name, str(path), "--description", "d").returncode != 0:
            return False
        self.do("orchestrator", "add", self.name)
        self.do("orchestrator", "grant-shared-access", self.name, self.name, "--read-only")
        return True

    def start(self, path):
        return self.cordon("orchestrator", "run", self.name, "--", "cat", f"shared/{self.name}/{MARK}")

    def forget(self):
        self.do("orchestrator", "revoke-shared-access", self.name, self.name)
        self.do("shared", "remove", self.name)
        self.do("orchestrator", "remove", self.name)


class AreaByHand(Kind):
    """An area that was written into config.yaml: the first use is what counts."""

    def settings(self, path):
        return {"shared_workspaces": {"a": {"path": str(path), "description": "d"}}, "orchestrators": {"o": {"shared_access": ["a"]}}}

    def yes(self, path):
        self.box.write("state/config.yaml", json.dumps(self.settings(path)), mode=0o600)
        return self.start(path).returncode == 0

    def start(self, path):
        return self.cordon("orchestrator", "run", "o", "--", "cat", f"shared/a/{MARK}")


class PrivateWorkspace(Kind):
    def yes(self, path):
        self.number += 1
        self.name = f"n{self.number}"
        self.do("orchestrator", "add", self.name)
        return self.cordon("orchestrator", "set-private-workspace", self.name, str(path)).returncode == 0

    def start(self, path):
        return self.cordon("orchestrator", "run", self.name, "--", "cat", MARK)

    def look(self, path):
        """A private workspace that is gone is made again, and empty."""
        shown = self.cordon("orchestrator", "show", self.name, "--json")
        private = pathlib.Path(shown.json()["private_workspace"]) if shown.returncode == 0 else None
        if not private or os.path.lexists(private):
            return super().look(path)
        done = self.start(path)
        assert done.returncode == 1 and done.stdout == "" and sorted(os.listdir(private)) == ["shared", "work"], str(done)
        return None

    def forget(self):
        self.do("orchestrator", "remove", self.name)


class ProfileState(Kind):
    """The state of a profile, in a directory that a variable names."""

    def yes(self, path):
        self.box.write("state/profiles/tool.yaml", "version: 1\nstate: [{path: ~/.tool, variable: TOOL_HOME}]\n")
        return self.start(path).returncode == 0

    def start(self, path):
        return self.cordon("run", "--quiet", *self.options, "--profile", "tool", "--", "sh", "-c", f"cat ~/.tool/{MARK}", cwd=self.box.path / "work", env={"TOOL_HOME": str(path)})


class PolicyShare(Kind):
    def yes(self, path):
        self.box.write("policy.yaml", f"version: 1\nshare: ['{path}:ro']\n")
        return self.start(path).returncode == 0

    def start(self, path):
        return self.cordon("run", "--quiet", *self.options, "--policy", str(self.box.path / "policy.yaml"), "--", "cat", f"{path}/{MARK}", cwd=self.box.path / "work")


class PolicyHome(PolicyShare):
    def yes(self, path):
        self.box.write("policy.yaml", f"version: 1\nhome: {path}\n")
        return self.start(path).returncode == 0

    def start(self, path):
        return self.cordon("run", "--quiet", *self.options, "--policy", str(self.box.path / "policy.yaml"), "--", "sh", "-c", f"cat ~/{MARK}", cwd=self.box.path / "work")


class Import(ProjectShare):
    """What was imported is a copy: nothing that happens to the directory later reaches it."""

    copies = True

    def yes(self, path):
        done = self.cordon("project", "import", "--json", str(path))
        self.project = done.json()["projects"][0]["id"] if done.returncode == 0 else None
        return done.returncode == 0

    def start(self, path):
        return self.cordon("session", "start", self.project, "--", "cat", MARK)


KINDS = [ProjectShare, ProjectHome, Update, Allowance, Area, AreaByHand, PrivateWorkspace, ProfileState, PolicyShare, PolicyHome, Import]


class Place:
    """The directory that settings name, `ground/N/parent/data`, and others beside it. An agent writes in `ground`."""

    def __init__(self, box, number):
        self.box, self.top = box, f"ground/{number}"
        self.path = self.make("parent/data", f"mine {number}\n")
        self.make("twin/data", SECRET)
        self.secret = self.make("secret", SECRET)

    def make(self, name, text):
        path = self.box.mkdir(f"{self.top}/{name}", mode=0o700)
        self.box.write(f"{self.top}/{name}/{MARK}", text)
        return path

    def mark(self):
        return (self.path / MARK).read_text()

    # ---- what an agent does ----

    def link(self):
        self.path.rename(self.path.with_name("away"))
        self.box.link(f"{self.top}/parent/data", self.secret)

    def parent_link(self):
        self.path.parent.rename(self.path.parent.with_name("away"))
        self.box.link(f"{self.top}/parent", self.secret.parent / "twin")

    def parent_exchanged(self):
        exchange(self.path.parent, self.path.parent.with_name("twin"))

    def replaced(self):
        self.path.rename(self.path.with_name("away"))
        self.secret.rename(self.path)

    def made_again(self):
        """The same name and, as often as the file system gives it, the same number."""
        number = self.path.stat().st_ino
        for _ in range(8):
            shutil.rmtree(self.path)
            self.make("parent/data", SECRET)
            if self.path.stat().st_ino == number:
                break

    def link_to_itself(self):
        """A link to the right directory, which can be turned later."""
        self.path.rename(self.path.with_name("away"))
        self.box.link(f"{self.top}/parent/data", self.path.with_name("away"))

    # ---- what changes nothing ----

    def untouched(self):
        pass

    def away_and_back(self):
        self.path.parent.rename(self.path.parent.with_name("elsewhere"))
        self.path.parent.with_name("elsewhere").rename(self.path.parent)
        self.path.rename(self.path.with_name("away"))
        self.path.with_name("away").rename(self.path)

    def filled(self):
        self.box.write(f"{self.top}/parent/data/more", "more")
        os.utime(self.path, (1, 1))
        self.path.chmod(0o755)


TURNS = ["link", "parent_link", "parent_exchanged", "replaced", "made_again", "link_to_itself"]
SAME = ["untouched", "away_and_back", "filled"]


def pairs(kind, box, rounds, turns=None, first=0):
    """Rounds of yes and turn, in either order, numbered from `first`; with `turns`, these after the yes. Returns how often the yes counted."""
    dice = random.Random(SEED)
    said = 0
    for number in range(rounds):
        place = Place(box, first + number)
        turn = turns[number] if turns else dice.choice(TURNS + SAME)
        before = None if turns else dice.choice([None] * 4 + TURNS)
        told = (type(kind).__name__, f"seed {SEED}", number, before, turn)
        if before:
            getattr(place, before)()
        meant = place.mark()
        if not kind.yes(place.path):
            assert before, told
            continue
        said += 1
        assert place.mark() == meant, told
        try:
            getattr(place, turn)()
        except OSError:
            assert before, told
        seen = kind.look(place.path)
        kind.forget()
        if turn in SAME or getattr(kind, "copies", False):
            assert seen == meant, (told, seen)
        else:
            assert seen is None or (before and seen == meant), (told, seen)
    return said


@pytest.mark.parametrize("make", KINDS)
def test_nothing_else_is_shown_than_what_stood_there_when_a_person_said_yes(box, cordon, make):
    """A few turns in each run of the tests; the next test has all of them."""
    dice = random.Random(SEED)
    turns = dice.sample(TURNS, 3) + [dice.choice(SAME)]
    assert pairs(make(box, cordon), box, len(turns), turns) == len(turns)


@pytest.mark.soak
@pytest.mark.limit(600)
@pytest.mark.parametrize("make", KINDS)
def test_two_hundred_random_pairs_of_yes_and_turn(box, cordon, make):
    """As root and as an ordinary user."""
    turns = TURNS + SAME
    assert pairs(make(box, cordon), box, len(turns), turns) == len(turns)
    assert pairs(make(box, cordon), box, 200 - len(turns), first=len(turns)) > 90


@pytest.mark.parametrize("mode", RUNS)
@pytest.mark.parametrize("make", [ProfileState, PolicyShare, PolicyHome])
def test_nor_in_another_mode(box, cordon, make, mode):
    """Where a run is what starts; the other kinds start sessions."""
    kind, place = make(box, cordon), Place(box, 0)
    kind.options = RUNS[mode]
    assert kind.yes(place.path) and kind.look(place.path) == place.mark()
    place.parent_exchanged()
    assert kind.look(place.path) is None
    place.parent_exchanged()
    assert kind.look(place.path) == place.mark()


@pytest.mark.parametrize("make", [kind for kind in KINDS if kind is not Import])
def test_what_was_replaced_is_refused_by_name_until_a_person_confirms_it(box, cordon, make):
    kind, place = make(box, cordon), Place(box, 0)
    assert kind.yes(place.path)
    place.replaced()
    (place.path / MARK).write_text("new\n")
    for _ in range(2):
        done = kind.start(place.path)
        assert done.returncode == 125 and done.stdout == "", str(done)
        assert str(place.path) in done.stderr and f"'cordon config confirm {place.path}'" in done.stderr, str(done)
    answer = cordon("config", "confirm", str(place.path), "--json").json()
    assert answer == {"path": str(place.path), "leads_to": str(place.path), "changed": True}
    assert kind.look(place.path) == "new\n"
    assert cordon("config", "confirm", str(place.path), "--json").json()["changed"] is False
    events = [json.loads(line) for line in cordon("audit", "--json").stdout.splitlines()]
    assert [e["path"] for e in events if e.get("op") == "confirm"] == [str(place.path)]


@pytest.mark.parametrize("make", [ProjectShare, ProjectHome, Area, ProfileState, PolicyShare])
def test_an_exchange_during_the_start_shows_nothing_else(box, cordon, make):
    """The path is exchanged all the time: a start sees the right directory or is refused."""
    kind, place = make(box, cordon), Place(box, 0)
    assert kind.yes(place.path)
    seen = []
    with Flipper(lambda: exchange(place.path.parent, place.path.parent.with_name("twin"))):
        for _ in range(20):
            done = kind.start(place.path)
            assert SECRET not in done.stdout, str(done)
            seen.append(done.returncode)
    assert any(seen), "nothing was exchanged"


# ---- where an agent writes ----


def agent_works_in(box, cordon, top):
    """A real agent in its sandbox turns what it can: a link in the root now leads to a secret of the host."""
    secret = box.mkdir("home/.ssh", mode=0o700)
    box.write(f"home/.ssh/{MARK}", SECRET)
    done = cordon("run", "--quiet", "--", "sh", "-c", f"mkdir own && echo own > own/{MARK} && ln -s {secret} turned && mkdir deep && ln -s {secret.parent} deep/up", cwd=top)
    assert done.returncode == 0, str(done)
    assert (top / "turned" / MARK).read_text() == SECRET
    return [top / "turned", top / "deep/up/.ssh"]


@pytest.mark.parametrize("make", [ProjectShare, ProjectHome, Update, AreaByHand, ProfileState, PolicyShare, PolicyHome, Import])
def test_a_link_that_an_agent_could_have_turned_is_never_followed(box, cordon, make):
    top = box.mkdir("root")
    for path in agent_works_in(box, cordon, top):
        kind = make(box, cordon)
        if make is AreaByHand:
            box.write("state/config.yaml", json.dumps(kind.settings(path)), mode=0o600)
            done = cordon("config", "validate")
            assert done.returncode == 1 and "config.yaml:1:" in done.stderr and f"cordon config confirm {path}" in done.stderr, str(done)
        assert not kind.yes(path), path
    # On the command line, too; a link of the person's own, beside the root, is followed.
    for option in ("--share", "--home"):
        done = cordon("run", option, str(top / "turned"), "--", "true", cwd=box.path / "work")
        assert done.returncode == 125 and f"the link {top}/turned, which an agent could have turned: agents write in {top}" in done.stderr, str(done)
    box.mkdir("mine")
    box.write(f"mine/{MARK}", "mine\n")
    box.link("way", box.path / "mine")
    assert cordon("run", "--share", f"{box.path}/way:ro", "--", "cat", f"{box.path}/way/{MARK}", cwd=box.path / "work").stdout == "mine\n"
    assert make(box, cordon).yes(box.path / "way")


def test_a_link_in_the_root_of_the_run_itself_is_not_followed(box, cordon):
    """Also when no run was recorded there: an older cordon has left no records."""
    top = box.mkdir("root")
    agent_works_in(box, cordon, top)
    shutil.rmtree(box.state / "state")
    done = cordon("run", "--share", f"{top}/turned:/data:ro", "--", "cat", f"/data/{MARK}", cwd=top)
    assert done.returncode == 125 and "which an agent could have turned" in done.stderr and done.stdout == "", str(done)


def test_a_path_by_hand_in_a_directory_of_agents_needs_a_person(box, cordon):
    top = box.mkdir("root")
    agent_works_in(box, cordon, top)
    own = top / "own"
    kind = AreaByHand(box, cordon)
    assert not kind.yes(own)
    done = cordon("config", "validate")
    assert done.returncode == 1 and f"{own} lies in {top}, where agents write" in done.stderr and "config.yaml:1:" in done.stderr, str(done)
    assert cordon("config", "confirm", str(own)).returncode == 0
    assert cordon("orchestrator", "add", "o").returncode == 0 and cordon("config", "validate").returncode == 0
    assert kind.look(own) == "own\n"
    # What an agent then puts there is something else.
    done = cordon("run", "--quiet", "--", "sh", "-c", f"mv own old && mkdir own && echo {SECRET.strip()} > own/{MARK}", cwd=top)
    assert done.returncode == 0, str(done)
    assert kind.look(own) is None
    assert "is not what it was" in cordon("config", "validate").stderr


def test_state_of_a_profile_is_made_behind_no_link_of_an_agent(box, cordon):
    """A missing directory is made where the person's own links lead, and nowhere else."""
    box.write("state/profiles/tool.yaml", "version: 1\nstate: [~/.config/tool/state]\n")
    run = ("run", "--quiet", "--profile", "tool", "--", "sh", "-c", "echo s > ~/.config/tool/state/made")
    box.mkdir("work")
    box.mkdir("dotfiles")
    box.link("home/.config", box.path / "dotfiles")
    assert cordon(*run, cwd=box.path / "work").returncode == 0
    assert (box.path / "dotfiles/tool/state/made").read_text() == "s\n"
    # It was removed, and an agent that works in dotfiles has put a link in its way.
    shutil.rmtree(box.path / "dotfiles/tool")
    box.mkdir("victim")
    done = cordon("run", "--quiet", "--", "ln", "-s", str(box.path / "victim"), "tool", cwd=box.path / "dotfiles")
    assert done.returncode == 0, str(done)
    done = cordon(*run, cwd=box.path / "work")
    assert done.returncode == 125 and f"the link {box.path}/dotfiles/tool, which an agent could have turned" in done.stderr, str(done)
    assert list((box.path / "victim").iterdir()) == []
    # What cordon itself makes again needs no question.
    (box.path / "dotfiles/tool").unlink()
    assert cordon(*run, cwd=box.path / "work").returncode == 0
    assert (box.path / "dotfiles/tool/state/made").read_text() == "s\n"


def test_records_of_an_older_version_get_their_identity_at_the_first_use(box, cordon):
    kind, place = ProjectShare(box, cordon), Place(box, 0)
    assert kind.yes(place.path)
    shutil.rmtree(box.state / "state/confirmed")
    assert kind.look(place.path) == place.mark()
    place.replaced()
    assert kind.look(place.path) is None


def test_questions_record_nothing(box, cordon):
    place = Place(box, 0)
    box.mkdir("work")
    box.write("policy.yaml", f"version: 1\nshare: ['{place.path}:ro']\n")
    policy = ("--policy", str(box.path / "policy.yaml"))
    for args in (("run", "--dry-run", *policy, "--", "true"), ("check", *policy, "file"), ("tree", *policy)):
        cordon(*args, cwd=box.path / "work")
    confirmed = box.state / "state/confirmed"
    assert not confirmed.exists() or list(confirmed.iterdir()) == []
    assert cordon("run", *policy, "--", "true", cwd=box.path / "work").returncode == 0
    assert len(list(confirmed.iterdir())) == 1


def test_a_record_that_can_not_be_read_counts_as_no_yes(box, cordon):
    kind, place = PolicyShare(box, cordon), Place(box, 0)
    assert kind.yes(place.path)
    (record,) = (box.state / "state/confirmed").iterdir()
    for rubbish in (b"", b"cordon-path 1\0", record.read_bytes()[:-40], record.read_bytes().replace(b" 1 ", b" 0x1 ")):
        record.write_bytes(rubbish)
        done = kind.start(place.path)
        assert done.returncode == 125 and "can't be read" in done.stderr and f"cordon config confirm {place.path}" in done.stderr, str(done)
    assert cordon("config", "confirm", str(place.path)).returncode == 0
    assert kind.look(place.path) == place.mark()


@pytest.mark.parametrize("make", [Area, PrivateWorkspace])
def test_a_circle_of_links_is_refused_and_can_be_taken_out_of_the_settings(box, cordon, make):
    kind, place = make(box, cordon), Place(box, 0)
    assert kind.yes(place.path)
    shutil.rmtree(place.path.parent)
    box.link(f"{place.top}/parent", place.path.parent)
    assert cordon("config", "validate").returncode == 1
    assert kind.look(place.path) is None
    kind.forget()
    assert cordon("config", "validate").returncode == 0


# ---- file systems ----


class Disk:
    """A file system in a file, mounted by way of a loop device."""

    def __init__(self, box, at):
        self.box, self.at = box, at
        self.image = box.path / "image"
        self.devices = []  # that are attached; the last one is mounted
        subprocess.run(["truncate", "-s", "16M", self.image], check=True)
        self.format()

    def format(self):
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)

    def attach(self, file):
        made = subprocess.run(["losetup", "-f", "--show", file], check=True, capture_output=True, text=True).stdout.strip()
        self.devices.append(made)
        return made

    def mount(self):
        subprocess.run(["mount", self.attach(self.image), self.at], check=True)
        self.box.own(self.at)

    def umount(self):
        if os.path.ismount(self.at):
            subprocess.run(["umount", self.at], check=True)
        while self.devices:
            subprocess.run(["losetup", "-d", self.devices.pop()], check=True)
        # A run that has just ended may still have the file system mounted in its own namespace.
        poll(lambda: not subprocess.run(["losetup", "-j", self.image], check=True, capture_output=True).stdout, 20, "the device is in use")

    def mount_elsewhere(self):
        """The same file system, by a device with another number: somebody else has taken the one that it had."""
        before = self.at.stat().st_dev
        self.umount()
        other = self.box.path / "other"
        subprocess.run(["truncate", "-s", "1M", other], check=True)
        for _ in range(8):
            self.mount()
            if self.at.stat().st_dev != before:
                return
            self.umount()
            self.attach(other)
        raise AssertionError("the device has always the same number")


@pytest.fixture
def disk(box):
    if os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user, who can't mount")
    made = Disk(box, box.mkdir("disk"))
    yield made
    made.umount()


@pytest.mark.serial
def test_a_directory_stays_itself_when_its_device_gets_another_number(box, cordon, disk):
    """As after a reboot: st_dev differs, the directory is the same."""
    disk.mount()
    box.write(f"disk/data/{MARK}", "mine\n")
    path, kinds = box.path / "disk/data", [ProjectShare(box, cordon), PolicyShare(box, cordon), Area(box, cordon)]
    for kind in kinds:
        assert kind.yes(path)
    before = path.stat()
    disk.mount_elsewhere()
    assert path.stat().st_dev != before.st_dev and path.stat().st_ino == before.st_ino
    for kind in kinds:
        assert kind.look(path) == "mine\n"
    # Another file system with a directory of the same name and number is something else.
    disk.umount()
    disk.format()
    disk.mount()
    box.write(f"disk/data/{MARK}", SECRET)
    assert path.stat().st_ino == before.st_ino
    for kind in kinds:
        assert kind.look(path) is None


@pytest.mark.serial
@pytest.mark.parametrize("make", [ProjectShare, PolicyShare])
def test_without_file_handles_number_and_time_of_birth_tell_directories_apart(box, cordon, make):
    """An overlay gives no handles."""
    if os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user, who can't mount")
    for name in ("lower", "upper", "workdir", "ground"):
        box.mkdir(name)
    options = f"lowerdir={box.path}/lower,upperdir={box.path}/upper,workdir={box.path}/workdir"
    subprocess.run(["mount", "-t", "overlay", "-o", options, "none", box.path / "ground"], check=True)
    try:
        kind = make(box, cordon)
        for number, turn in enumerate(["made_again", "replaced", "untouched", "filled"]):
            place = Place(box, number)
            assert kind.yes(place.path)
            meant = place.mark()
            records = [record.read_bytes().split(b"\0") for record in (box.state / "state/confirmed").iterdir()]
            assert all(words[3].endswith(b" -") for words in records), "the file system has handles"
            getattr(place, turn)()
            assert kind.look(place.path) == (meant if turn in SAME else None)
    finally:
        subprocess.run(["umount", box.path / "ground"], check=True)
