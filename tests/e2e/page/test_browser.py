# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: for people who do not see it, in the dark, on a narrow screen, by keyboard, and without script."""
import json

import pytest

from support import poll
from worlds import World


@pytest.fixture
def world(box, cordon):
    return World(box, cordon)


def paths(world):
    """Every page, with a thing on it."""
    return {
        "home": "/",
        "sessions": "/sessions",
        "session": f"/session/{world.session}",
        "runs": "/runs",
        "run": f"/run/{world.run}",
        "approvals": "/approvals",
        "changes": "/changes",
        "view": f"/changes/{world.view}",
        "loops": "/loop",
        "loop": f"/loop/{world.loop_id}",
        "workflows": "/workflow",
        "workflow": f"/workflow/{world.flow}",
        "access": "/access",
        "audit": "/audit",
        "performance": "/performance",
        "machine": "/doctor",
    }


def test_every_page_is_accessible_in_light_and_dark_and_fits_a_narrow_screen(world, tab):
    """Pictures are kept for people to look at."""
    for scheme, width in (("light", 1280), ("dark", 360)):
        person = tab(colorScheme=scheme, viewport={"width": width, "height": 900})
        for name, path in paths(world).items():
            person.goto(path)
            person.picture(f"{name}-{scheme}")
            assert person.axe() == [], (name, scheme)
            assert not person.overflows(), (name, width)


def test_what_happens_is_seen_without_loading_the_page_again(world, tab):
    person = tab()
    person.goto(f"/session/{world.session}")
    person.evaluate("window.same = true")
    world.say("echo fresh-$((40 + 2)); echo y >>AGENTS.md")
    person.see("fresh-42")
    person.goto("/")
    person.evaluate("window.same = true")
    other = world.ask("project", "create", "later", "--no-git")["id"]
    started = world.cordon("session", "start", other, "--detach", "--json", "--", "sleep", "60").json()["session_id"]
    person.see(started[:8])
    assert person.evaluate("window.same") is True


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
def test_a_person_does_everything_by_keyboard_or_without_script(world, tab, script):
    """With script, by keyboard alone; without, by clicks. The proof is taken from the host."""
    person = tab(javaScriptEnabled=script)
    repo, ask = world.repo, world.ask

    def use(role, name, **more):
        """Presses a button or marks a box, by the keys if there is a script to look where the focus is."""
        find = (("getByRole", role, {"name": name} | more), ("first",))
        if not script:
            person.element(*find, call="click")
            return
        person.element(*find, call="waitFor")
        for _ in range(200):  # the page may exchange its parts meanwhile, so the control is looked for each time
            if person.element(*find, call="evaluate", args=["(e) => e === document.activeElement"]):
                person.press("Enter" if role in ("button", "link") else "Space")
                return
            in_group = role == "radio" and person.element(*find, call="evaluate", args=["(e) => e.form === document.activeElement.form && document.activeElement.type === 'radio'"])
            person.press("ArrowDown" if in_group else "Tab")
        raise AssertionError(f"no way to {role} {name} by keyboard")

    # A session: a line, and its end.
    person.goto(f"/session/{world.session}")
    person.fill("Send a line", "echo typed >typed")
    use("button", "Send", exact=True)
    person.see("The line was sent")
    poll(lambda: list((world.box.state / "projects" / world.project / "workspaces").rglob("typed")), 20, "the line")
    use("checkbox", "Yes, end it")
    use("button", "Stop this session")
    person.see("The session ends now")
    poll(lambda: ask("session", "get", world.session)["status"] != "active", 30, "the end of the session")
    # An approval.
    person.goto("/approvals")
    use("radio", "Deny")
    use("button", "Answer")
    person.see("Denied.")
    assert ask("approvals", "show", world.approval)["state"] == "denied"
    # Changes: one hunk, its undo, all of it.
    person.goto(f"/changes/{world.view}")
    use("checkbox", "Hunk 2 of 2")
    use("button", "Apply the chosen files and hunks")
    person.see("The changes are in the host's tree")
    text = (repo / "lib/long.txt").read_text()
    assert "LINE 50\n" in text
    assert "LINE 5\n" not in text and not (repo / "lib/new.txt").exists()
    person.goto(f"/changes/{world.view}")
    use("button", "Undo the last apply")
    person.see("as it was before the last apply")
    assert "LINE" not in (repo / "lib/long.txt").read_text()
    person.goto(f"/changes/{world.view}")
    use("checkbox", "I have looked at what is deleted")
    use("button", "Apply all of it")
    person.see("The changes are in the host's tree")
    assert (repo / "lib/new.txt").exists() and not (repo / "lib/b.txt").exists()
    # A loop: a story gets another chance.
    person.goto(paths(world)["loop"])
    use("button", "Try again")
    person.see("The story has its attempts back")
    # A workflow goes on.
    person.goto(f"/workflow/{world.flow}")
    use("button", "Approve this step")
    person.see("The step is approved")
    poll(lambda: world.desk.status(world.flow)["state"] not in ("waiting", "running"), 60, "the end of the workflow")
    assert world.desk.status(world.flow)["state"] == "succeeded"
    # The audit log has all of it.
    done = [json.loads(line) for line in world.cordon("audit", "--json").stdout.splitlines() if '"page"' in line]
    assert done, "no action of the page was recorded"


def test_hostile_words_stay_words(world, tab):
    """What an agent writes runs nothing: no dialog, no error, no foreign request (the end of the tab checks it)."""
    person = tab()
    for path in paths(world).values():
        person.goto(path)
        html = person.html()
        assert "<script>alert" not in html and "\u202e" not in html and "\033" not in html, path
