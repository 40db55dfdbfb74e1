# SPDX-License-Identifier: Apache-2.0
"""nice: the settings of a run that projects have are arguments of the tools, as the table of a run has them."""


def test_a_project_gets_it_by_a_tool_and_a_lower_one_needs_a_person(raw, cordon):
    server = raw()

    def call(id, tool, **arguments):
        return server.ask(id, "tools/call", {"name": tool, "arguments": arguments})

    schemas = {tool["name"]: tool["inputSchema"]["properties"] for tool in server.ask("list", "tools/list")["result"]["tools"]}
    assert schemas["project_create"]["nice"] == {"type": "integer", "description": "nice value of the run's processes, 0 to 19"}
    assert schemas["project_update"]["nice"] == {"type": "integer"}
    made = call("a", "project_create", name="p", nice=15)["result"]["structuredContent"]
    assert made["nice"] == 15
    refused = call("b", "project_update", project_id=made["id"], nice=20)["result"]
    assert refused["isError"] and "nice must be a number from 0 to 19" in refused["structuredContent"]["error"]["message"]
    assert "needs a person" in call("c", "project_update", project_id=made["id"], nice=5)["error"]["message"]
    assert "nice from 15 to 5" in cordon("approvals", "list", "--json").stdout
    assert call("d", "project_get", project_id=made["id"])["result"]["structuredContent"]["nice"] == 15
    assert call("e", "project_update", project_id=made["id"], nice=19)["result"]["structuredContent"]["nice"] == 19
