# SPDX-License-Identifier: Apache-2.0
"""/metrics: what a monitoring system reads of `cordon serve`, and who may."""
import json
import shutil
import uuid

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from serving import PATIENT, Serve
from support import poll


@pytest.fixture
def serve(cordon):
    servers = []

    def start(*options, **more):
        server = Serve(cordon, *options, **more)
        servers.append(server)
        server.token = server.make_token("--scope", "read")
        poll(lambda: server.request("GET", "/metrics").status == 200, PATIENT, "the token to be known")
        return server

    yield start
    for server in servers:
        assert server.stop() == 0


def values(server):
    """{(name, labels): number} as a parser of OpenMetrics reads them."""
    answer = server.request("GET", "/metrics")
    assert answer.status == 200 and answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0"), answer
    found = {}
    for metric in text_string_to_metric_families(answer.body.decode()):
        assert metric.name.startswith("cordon_") and metric.documentation
        for sample in metric.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def many_sessions(box, cordon, n):
    """A project, one real session of it that has ended, and copies of its record."""
    project = cordon("project", "create", "tenant-secret-name", "--no-git", "--json").json()["id"]
    done = cordon("session", "start", project, "--", "true")
    assert done.returncode == 0, str(done)
    sessions = next(box.path.rglob("state/sessions"))
    first = next(sessions.iterdir())
    poll(lambda: json.loads((first / "record.json").read_text())["status"] == "completed", PATIENT, "the session to end")
    for i in range(n - 1):
        new = str(uuid.UUID(int=i + (4 << 76) + (8 << 60)))
        shutil.copytree(first, sessions / new, ignore=shutil.ignore_patterns("control"))
        record = json.loads((sessions / new / "record.json").read_text())
        assert record["session_id"] == first.name
        record["session_id"] = new
        (sessions / new / "record.json").write_text(json.dumps(record))
    box.own(sessions)
    return project


def test_runs_refusals_and_sessions_are_counted_and_no_tenant_is_named(box, cordon, serve):
    repo = box.repo("repo", {"lib/a": "a\n", "docs/b": "b\n"})
    assert cordon("run", "--", "true", cwd=repo).returncode == 0
    server = serve()
    before = values(server)
    assert before["cordon_runs_started_total", ()] == 0, "what was before the server does not count"
    assert cordon("run", "--workspace", "lib", "--workspace-mode", "strict", "--", "sh", "-c", "echo x >docs/x; true", cwd=repo).returncode == 0
    assert cordon("run", "--workspace", "lib", "--", "sh", "-c", "echo x >docs/y; exit 3", cwd=repo).returncode == 3
    project = many_sessions(box, cordon, 500)

    def seen():
        now = values(server)
        return now if now["cordon_sessions", (("state", "completed"),)] == 500 else None

    now = poll(seen, PATIENT, "the sessions to be counted anew")
    assert now["cordon_runs_started_total", ()] == 3
    assert now["cordon_runs_ended_total", (("state", "completed"),)] == 2 and now["cordon_runs_ended_total", (("state", "failed"),)] == 1
    assert now["cordon_refusals_total", (("kind", "outside"),)] >= 1 and now["cordon_warnings_total", ()] >= 1
    assert now["cordon_run_duration_seconds_count", ()] == 3 == now["cordon_run_duration_seconds_bucket", (("le", "+Inf"),)]
    assert now["cordon_sessions", (("state", "active"),)] == 0 and now["cordon_approvals_waiting", ()] == 0
    assert now["cordon_server_resident_bytes", ()] > 100000 and now["cordon_audit_behind", ()] == 0
    text = server.request("GET", "/metrics").body.decode()
    assert text.endswith("# EOF\n") and project not in text and "tenant" not in text and "repo" not in text
    labelled = values(serve("--metrics-labels"))
    assert labelled["cordon_sessions", (("project", project), ("state", "completed"))] == 500


def test_metrics_are_for_who_may_see_all(box, cordon, serve):
    server = serve()
    project = cordon("project", "create", "p", "--no-git", "--json").json()["id"]
    limited = server.make_token("--scope", "admin", "--project", project)
    poll(lambda: server.modern("tools/list", token=limited).status == 200, PATIENT, "the token to be known")
    assert server.request("GET", "/metrics", headers={"Authorization": None}).status == 401
    assert server.request("GET", "/metrics", token="cordon_" + "A" * 43).status == 401
    assert server.request("GET", "/metrics", token=limited).status == 403
    assert server.request("GET", "/metrics", headers={"Origin": "http://evil.example"}).status == 403
    assert server.request("GET", "/metrics", headers={"Host": "evil.example"}).status == 403
    assert server.request("POST", "/metrics").status == 405
    assert server.request("GET", "/metrics").status == 200
