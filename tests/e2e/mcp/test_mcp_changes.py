# SPDX-License-Identifier: Apache-2.0
"""Changes of views through MCP: anybody may look, a person decides what is applied and what is thrown away."""
from views import View


def test_the_question_names_the_commits_that_come_with_a_view(connect, cordon, box):
    tree = box.mkdir("root")
    box.write("root/old", "old\n")
    script = "git init -q -b main; git config user.name a; git config user.email a@b; git add .; git commit -q -m one; git branch topic"
    assert box.run("sh", "-ec", script, cwd=tree).returncode == 0
    work = "echo new >new; git add new; git commit -q -m two; git checkout -q -B topic; git commit -q --amend -m other; git tag v1"
    done = cordon("run", "--cow", "--no-summary", "--", "sh", "-ec", f"git config user.name a; git config user.email a@b; {work}", cwd=tree)
    assert done.returncode == 0, done
    client = connect("v1", approve=True)
    applied = client.tool("changes_apply", view_id="latest", root=str(tree))
    assert applied["git"]["state"] == "taken" and {ref["name"] for ref in applied["git"]["refs"]} == {"refs/heads/main", "refs/heads/topic", "refs/tags/v1"}
    questions = "\n".join(str(note) for note in client.notes)
    assert '2 new commits are taken over: "refs/heads/main" moves, "refs/heads/topic" moves, "refs/tags/v1" is new.' in questions, questions
    assert box.run("git", "log", "--format=%s", "topic", cwd=tree).stdout == "other\none\n"


def test_nothing_leaves_a_view_without_a_persons_consent(connect, box):
    tree = box.mkdir("root")
    box.write("root/old", "old\n")
    view = View(box, tree).work("echo all: > Makefile; rm old; echo more > plain; printf '\\033[2J' > 'bad'")
    calls = [("changes_apply", {"view_id": view.id}), ("changes_discard", {"view_id": view.id})]
    for kind in ("v1", "v2"):
        client = connect(kind, approve=False)
        assert [item["id"] for item in client.tool("changes_list", root=str(tree))["changes"]] == [view.id]
        shown = client.tool("changes_diff", view_id="latest", root=str(tree))
        assert shown["changes"][0]["path"] == "Makefile" and shown["changes"][0]["executed_by"] == "make" and not shown["truncated"]
        assert "+all:" in shown["diff"] and "\x1b" not in shown["diff"]
        for name, args in calls:
            assert client.refused(name, **args)["kind"] == "policy_denied", name
        assert (tree / "old").exists() and not (tree / "Makefile").exists() and view.dir.exists()
        client.close()
    client = connect("v2", approve=None)
    assert client.fault("tool", name="changes_apply", args=calls[0][1])["code"] == -32021
    client.close()
    client = connect("v1", approve=True)
    for args in ({"view_id": "latest"}, {"view_id": view.id, "paths": ["../x"]}, {"view_id": view.id, "paths": ["/etc"]}, {"view_id": "../.."}, {"view_id": view.id, "root": "x"}):
        assert client.refused("changes_apply", **args)["kind"] in ("usage", "not_found"), args
    applied = client.tool("changes_apply", view_id=view.id, paths=["Makefile", "old"])
    assert {item["path"] for item in applied["changed"]} == {"Makefile", "old"}
    assert (tree / "Makefile").read_text() == "all:\n" and not (tree / "old").exists() and not (tree / "plain").exists()
    questions = "\n".join(str(note) for note in client.notes)
    assert f'to "{tree}"? 2 files change, 1 of them are deleted. The host would execute 1 of them: "Makefile" (make)' in questions
    box.write("root/plain", "host\n")
    assert client.refused("changes_apply", view_id=view.id)["kind"] == "conflict"
    assert client.tool("changes_discard", view_id=view.id) == {"view_id": view.id, "discarded": True} and not view.dir.exists()


def test_the_lists_of_a_large_view_are_bounded_and_say_so(raw, box):
    tree = box.mkdir("root")
    many = 2500
    view = View(box, tree).work(f"echo all: > Makefile; mkdir d; i=0; while [ $i -lt {many} ]; do echo $i > d/$i; i=$((i+1)); done; seq 100000 > big")
    server = raw("--approved")

    def tool(name, **arguments):
        result = server.ask(name, "tools/call", {"name": name, "arguments": {"view_id": view.id, **arguments}})["result"]
        assert not result.get("isError"), result
        return result["structuredContent"]

    shown = tool("changes_diff")
    assert shown["truncated"] is True and shown["total"] == many + 3 and len(shown["changes"]) == 1000
    assert shown["changes"][0]["path"] == "Makefile" and "+all:" in shown["diff"] and len(shown["diff"].encode()) <= 256 << 10
    # Each patch is whole, or not there.
    assert all(one.endswith("\n") and one.count("\n@@ -0,0 +1 @@\n+") == 1 for one in shown["diff"].split("diff --git ")[1:]), shown["diff"][-300:]
    named = tool("changes_diff", paths=[f"d/{i}" for i in range(2000, 2500)])
    assert named["truncated"] is False and named["total"] == 500 and {one["path"] for one in named["changes"]} == {f"d/{i}" for i in range(2000, 2500)}
    assert tool("changes_diff", paths=["big"])["truncated"] is True
    applied = tool("changes_apply")
    assert applied["truncated"] is True and applied["total"] == many + 3 and len(applied["changed"]) == 1000
    assert len(list((tree / "d").iterdir())) == many and (tree / "Makefile").exists()
