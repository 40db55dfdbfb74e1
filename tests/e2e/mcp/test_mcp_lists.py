# SPDX-License-Identifier: Apache-2.0
"""Pages of long lists: a server remembers an order that has settled, and forgets it as soon as anybody changes the list."""
import time

SETTLED = 1.2  # seconds; src/store/list.c trusts what is older than one


def pages(server, tool, key, **arguments):
    """The ids of a whole list, three at a time, with the total that every page must agree on."""
    found = []
    while True:
        answer = server.ask(1, "tools/call", {"name": tool, "arguments": {"limit": 3, "offset": len(found), **arguments}})["result"]["structuredContent"]
        found += [record["id"] for record in answer[key]]
        if not answer[key] or len(found) >= answer["total"]:
            assert len(found) == answer["total"]
            return found


def test_pages_of_workspaces_follow_every_change(raw, cordon):
    server = raw("--approved")
    project = cordon("project", "create", "p", "--json").json()["id"]
    ids = [cordon("project", "get", project, "--json").json()["default_workspace_id"]]
    listed = lambda: pages(server, "workspace_list", "workspaces", project_id=project)  # noqa: E731
    for number in range(7):
        ids.append(cordon("workspace", "create", project, "--id", f"z{9 - number}", "--json").json()["id"])
        assert listed() == ids
    time.sleep(SETTLED)
    assert listed() == ids == listed()
    # Another process adds one and takes one away.
    ids.append(cordon("workspace", "create", project, "--id", "a", "--json").json()["id"])
    assert listed() == ids
    time.sleep(SETTLED)
    assert listed() == ids
    assert cordon("workspace", "delete", project, "z5").returncode == 0
    ids.remove("z5")
    assert listed() == ids
    time.sleep(SETTLED)
    assert listed() == ids
    # And what changed in a record is seen at once.
    other = server.ask(2, "tools/call", {"name": "project_create", "arguments": {"name": "q"}})["result"]["structuredContent"]["id"]
    assert set(pages(server, "project_list", "projects")) == {project, other}
    time.sleep(SETTLED)
    assert set(pages(server, "project_list", "projects")) == {project, other}
    cordon("project", "update", other, "--description", "new")
    answer = server.ask(3, "tools/call", {"name": "project_list", "arguments": {}})["result"]["structuredContent"]
    assert {record["id"]: record["description"] for record in answer["projects"]}[other] == "new"
    assert listed() == ids
