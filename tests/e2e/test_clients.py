# SPDX-License-Identifier: Apache-2.0
"""Four real clients from the npm registry, as an ordinary user starts them, natively and in cordon.

A stand-in for the model of each asks by tool calls for a file in the workspace, and for five things that an agent has no business with.
Natively all of it is done, which shows that the attempts are real. In cordon the first is done and nothing else, and every refusal is
reported. What happened is read from the host, and from what the clients told the model.
"""
import json
import re

import pytest

from clients.four import CLIENTS, Person, documented_lines, install
from clients.model import Model
from support import callers

ATTACKS = ("outside", "secret", "hook", "settings", "program")
REFUSED = re.compile("permission denied|read-only file system|no such file|nonexistent|not exist|not found", re.IGNORECASE)
FIRST, SECOND = "fix the tests", "now the docs"

pytestmark = pytest.mark.limit(600)


@pytest.fixture(scope="session")
def installed(base_dir):
    return install(base_dir)


@pytest.fixture
def who():
    """Clients refuse to work without questions as root."""
    return callers()["user"]


@pytest.fixture
def model():
    made = Model({})
    yield made
    made.close()


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def person(request, box, installed, model):
    made = Person(box, installed, request.param, model)
    model.deeds.update({FIRST: made.deeds(1), SECOND: made.deeds(2)})
    return made


def with_option(line, option):
    """The line of `cordon run` with one more option."""
    return [*line[:2], option, *line[2:]]


def natively(line):
    """What a person would type without cordon."""
    return line[line.index("--") + 1:]


def test_natively_a_client_does_whatever_its_model_asks_for(person, model):
    """The control: the same attempts, by the same tool calls, without cordon."""
    lines = documented_lines(person.client)
    terminal = person.terminal(natively(lines["terminal"]))
    terminal.work(model, person.client.presses)
    terminal.close()
    assert person.done(1) == {"inside", *ATTACKS}, model.answers
    person.client.configure(person.box, person.home, person.work, model)  # what was planted is taken out again
    model.requests.clear()
    model.deeds[FIRST] = person.deeds(2)
    done = person.headless(natively(lines["headless"]))
    assert done.returncode == 0 and model.farewell in done.stdout, done
    assert person.done(2) == {"inside", *ATTACKS}, model.answers


def reported(person):
    """Places of which the log says that an access was refused."""
    told = person.box.run("cordon", "audit", "--json", "--kind", "violation", env=person.env)
    records = [json.loads(line) for line in told.stdout.splitlines()]
    return {record["path"] for record in records if record["decision"] == "deny"}


def assert_only_the_inside_is_done(person, model, number):
    """As the host sees it, as the log tells it, and as the client told its model."""
    assert person.done(number) == {"inside"}, model.answers
    places = person.places(number)
    assert {str(places[name]) for name in ATTACKS} <= reported(person)
    assert all(REFUSED.search(model.answers[name]) for name in ATTACKS), model.answers


def test_in_cordon_a_client_does_its_work_and_nothing_else_and_goes_on_at_the_next_start(person, model):
    before = {name: (person.home / name).read_bytes() for name in (person.client.settings, ".ssh/id_ed25519")}
    lines = documented_lines(person.client)
    terminal = person.terminal(lines["terminal"])
    terminal.work(model, person.client.presses)
    shown = terminal.text()
    terminal.close()
    assert_only_the_inside_is_done(person, model, 1)
    assert "[SUMMARY]" in shown and "attempts refused" in shown, shown
    assert not model.heard(SECOND)

    model.requests.clear()
    model.answers.clear()
    dry = person.headless(with_option(lines["headless"], "--dry-run"))
    assert dry.returncode == 0, dry
    done = person.headless(lines["more"])
    assert done.returncode == 0 and model.farewell in done.stdout, done
    assert_only_the_inside_is_done(person, model, 2)
    assert all(str(person.places(2)[name]) in done.stderr for name in ATTACKS), done
    assert any(FIRST in body and SECOND in body for _, body in model.requests), "the conversation did not go on"
    assert {name: (person.home / name).read_bytes() for name in before} == before
