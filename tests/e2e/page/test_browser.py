# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: for people who do not see it, in the dark, on a narrow screen, by keyboard, and without script."""
import json

import pytest

from support import callers, poll
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
        "session-allow": f"/session/{world.session}/allow",
        "job": f"/run/{world.run}/0",
        "view-discard": f"/changes/{world.view}/discard",
        "loop-story": f"/loop/{world.loop_id}/story?prd=0&id=S2",
        "loop-call": f"/loop/{world.loop_id}/call?n=1",
        "workflow-definition": "/workflow/definition?orchestrator=desk&workflow=flow",
        "workflow-log": f"/workflow/{world.flow}/log?step=plan",
        "access-change": "/access/change?orchestrator=desk&area=docs",
        "policies": "/access/policy",
        "policy": f"/access/policy?project={world.project}&ask=AGENTS.md&find=a",
        "audit-check": "/audit/check",
    }


def test_every_page_is_accessible_in_light_and_dark_and_fits_a_narrow_screen(world, tab, who):
    """Pictures are kept for people to look at. A page looks the same whoever runs the server: where both do, each takes one of the two looks."""
    looks = {"root": ("light", 1280), "user": ("dark", 360)}
    for scheme, width in [looks[who.name]] if len(callers()) > 1 else looks.values():
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


def test_parts_of_a_page_come_and_go_and_what_is_gone_is_said(world, tab):
    person = tab()
    person.may_fail = ("404",)
    person.goto(f"/changes/{world.view}?done=undone")
    person.see("The host's tree is as it was")
    assert "done=" not in person.url(), "who loads the page again has done nothing again"
    person.evaluate("window.same = true")
    person.see("Apply the chosen files")
    assert world.cordon("changes", "apply", world.view, cwd=world.repo).returncode == 0
    person.see("Undo the last apply")
    person.element(("getByText", "Apply the chosen files"), call="waitFor", args=[{"state": "detached"}])
    assert world.cordon("changes", "undo", world.view, cwd=world.repo).returncode == 0
    person.see("Apply the chosen files")
    assert world.cordon("changes", "discard", world.view, cwd=world.repo).returncode == 0
    person.see("not live: what this page shows is not there any more")
    assert person.evaluate("window.same") is True


def test_a_tab_that_nobody_sees_holds_no_stream(world, tab):
    """Browsers have six connections for a server; a form of the seventh tab would wait for ever."""
    person = tab()
    person.goto(f"/session/{world.session}")
    person.see("live")
    look = "(hidden) => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden }); document.dispatchEvent(new Event('visibilitychange')); }"
    streams = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/events')).length"
    began = person.evaluate(streams)
    person.evaluate(f"({look})(true)")
    poll(lambda: person.evaluate(streams) == began + 1, 20, "the end of the stream")  # an entry comes when its stream has ended
    world.say("echo unseen-$((40 + 2))")
    poll(lambda: "unseen-42" in world.cordon("session", "output", world.session).stdout, 20, "the line")
    assert "unseen-42" not in person.html()
    person.evaluate(f"({look})(false)")
    person.see("unseen-42")


@pytest.mark.parametrize("way", ["script", "plain"] if len(callers()) == 1 else ["each"])
def test_a_person_acts_by_keyboard_or_without_script(world, tab, who, way):
    """With script, by keyboard alone; without, by clicks. The proof is taken from the host. Where there are two callers, each takes one of the ways."""
    person = tab(javaScriptEnabled=way == "script" or (way == "each" and who.name == "root"))
    repo, ask, use = world.repo, world.ask, person.use
    # A session: a line, and its end.
    person.goto(f"/session/{world.session}")
    person.write("Send a line", "echo typed >typed")
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
