# SPDX-License-Identifier: Apache-2.0
"""Access: the matrix of orchestrators and areas, granting and revoking."""
import html
import json
import re

import pytest

from flows import Desk, step
from support import poll

HOSTILE = "<script>alert(1)</script>\" '\x1b[31m\u202e\nx"


def cell(text, orchestrator, area):
    """What the matrix says about one pair, without markup."""
    row = re.search(rf'<th scope="row">{orchestrator}</th>(.*?)</tr>', text, re.S)[1]
    found = re.search(rf'<td data-label="{area}">(.*?) <a ', row, re.S)[1]
    return html.unescape(re.sub(r"<[^>]*>", "", found))


def holds_no_markup(text):
    assert "<script>alert" not in text and "\x1b" not in text and "\u202e" not in text


@pytest.fixture
def desk(box, cordon):
    """`desk` may write docs, and has a channel of another domain than secret."""
    made = Desk(box, cordon, areas=("docs", "specs", "secret"))
    settings = json.loads((box.state / "config.yaml").read_text())
    settings["orchestrators"] = {"desk": {"shared_access": ["docs"]}, "other": {}}
    settings["shared_workspaces"]["secret"] |= {"domain": "law", "description": HOSTILE}
    settings["channel_profiles"] = {"line": {"channel": "local", "orchestrator_id": "desk", "domain": "support"}}
    box.write("state/config.yaml", json.dumps(settings), mode=0o600)
    box.mkdir("ws/other", mode=0o700)
    return made


def test_the_matrix_is_that_of_the_command_and_grants_change_it(desk, cordon, page):
    words = {"none": "none", "ro": "read", "rw": "read and write"}

    def assert_same():
        text = page.get("/access")
        holds_no_markup(text)
        for orchestrator, areas in cordon("access", "--json").json()["access"].items():
            for area, access in areas.items():
                assert cell(text, orchestrator, area).startswith(words[access]), (orchestrator, area)
        return text

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in assert_same()
    place = "/access/change"
    assert page.post(place, action="grant", orchestrator="other", area="docs", access="ro") == f"{place}?orchestrator=other&area=docs&done=granted"
    assert_same()
    assert cordon("access", "--json").json()["access"]["other"]["docs"] == "ro"
    assert page.post(place, action="grant", orchestrator="other", area="docs", access="rw").endswith("done=granted")
    assert cordon("access", "--json").json()["access"]["other"]["docs"] == "rw"
    # What crosses domains is granted only when the person says so.
    asked = page.get(f"{place}?orchestrator=desk&area=secret")
    holds_no_markup(asked)
    assert 'name="cross"' in asked and "support (channel profile line)" in asked and 'name="cross"' not in page.get(f"{place}?orchestrator=desk&area=specs")
    refused = page.post(place, 409, action="grant", orchestrator="desk", area="secret", access="ro")
    assert "That did not work" in refused and cordon("access", "--json").json()["access"]["desk"]["secret"] == "none"
    page.post(place, action="grant", orchestrator="desk", area="secret", access="ro", cross="yes")
    assert cell(assert_same(), "desk", "secret") == "read across domains"
    # Nothing else is a grant.
    for fields, status in (
        ({"action": "grant", "orchestrator": "other", "area": "specs"}, 400),
        ({"action": "grant", "orchestrator": "other", "area": "specs", "access": "all"}, 400),
        ({"action": "", "orchestrator": "other", "area": "specs", "access": "rw"}, 400),
        ({"action": "grant", "orchestrator": "nobody", "area": "specs", "access": "rw"}, 404),
        ({"action": "grant", "orchestrator": "other", "area": HOSTILE, "access": "rw"}, 404),
        ({"action": "grant", "orchestrator": "other", "area": "specs", "access": "rw", "token": "0" * 64}, 403),
    ):
        holds_no_markup(page.post(place, status, **fields))
    assert cordon("access", "--json").json()["access"]["other"] == {"docs": "rw", "specs": "none", "secret": "none"}
    assert "principal=uid:" in cordon("audit", "--kind", "call").stdout and "about=other docs" in cordon("audit", "--kind", "call").stdout
    picture = page.raw("GET", "/access/picture")
    assert picture.headers["content-type"] == "image/svg+xml" and "access.svg" in picture.headers["content-disposition"]
    assert picture.body.decode() == cordon("access", "--svg").stdout
    for path in (place, f"{place}?orchestrator=desk", f"{place}?orchestrator=%3Cb%3E&area=docs"):
        assert "<b>" not in page.get(path, 404)


def test_revoking_says_who_holds_the_area_and_ends_or_keeps_them(desk, cordon, page, leftovers):
    page.post("/access/change", action="grant", orchestrator="desk", area="specs", access="rw")
    desk.define(step("one", 'echo ready; while :; do echo x >> shared/docs/log; sleep 0.05; done'))
    run = desk.begin()
    poll(lambda: "ready" in cordon("workflow", "logs", run).stdout, 60)
    assert "No step of a workflow" in page.get("/access/change?orchestrator=other&area=docs")
    for area in ("docs", "specs"):
        assert f'href="/workflow/{run}"' in page.get(f"/access/change?orchestrator=desk&area={area}")
    after = page.post("/access/change", action="revoke", orchestrator="desk", area="specs", keep="yes")
    assert after.endswith("done=revoked-kept") and f'href="/workflow/{run}"' in page.get(after) and desk.status(run)["state"] == "running"
    assert page.post("/access/change", action="revoke", orchestrator="desk", area="docs", keep="no").endswith("done=revoked")
    poll(lambda: desk.status(run)["state"] == "failed", 60)
    assert desk.status(run)["terminalReason"] == "revoked" and cordon("access", "--json").json()["access"]["desk"]["docs"] == "none"
    page.stop()
    leftovers.assert_none(60)


def test_errors_of_the_settings_are_shown_and_what_is_gone_can_be_revoked(desk, box, cordon, page):
    (desk.areas["docs"] / "file").unlink()
    desk.areas["docs"].rmdir()
    assert "does not exist" in page.get("/access") and cell(page.get("/access"), "desk", "docs") == "read and write"
    assert "does not exist" in page.post("/access/change", 409, action="grant", orchestrator="desk", area="specs", access="ro")
    page.post("/access/change", action="revoke", orchestrator="desk", area="docs", keep="no")
    assert cell(page.get("/access"), "desk", "docs") == "none"
    box.write("state/config.yaml", "orchestrators: [\n", mode=0o600)
    assert "config.yaml:" in page.get("/access") and page.raw("GET", "/access/picture").status == 409


def test_a_large_matrix_is_shown_in_parts(box, cordon, page):
    settings = {
        "shared_workspaces": {f"area-{i}": {"path": str(box.mkdir(f"areas/{i}")), "description": "x"} for i in range(20)},
        "orchestrators": {f"team-{i:03}": {"shared_access": ["area-3"]} for i in range(120)},
    }
    box.write("state/config.yaml", json.dumps(settings), mode=0o600)
    text = page.get("/access")
    assert "50 of 120 orchestrators and 12 of 20 areas are shown" in text and "team-050" not in text and "Next areas" in text
    second = page.get("/access?from=50&column=12")
    assert "team-050" in second and "team-049" not in second and "area-12" in second and "Areas before these" in second
    found = page.get("/access?orchestrators=-119&areas=area-3")
    assert cell(found, "team-119", "area-3") == "read and write" and "team-118" not in found
    assert "No orchestrator or no area" in page.get("/access?orchestrators=%3Cscript%3Ealert(1)%3C/script%3E")
