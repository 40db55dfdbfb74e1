# SPDX-License-Identifier: Apache-2.0
"""Availability: fork bombs, memory, disks and logs."""
import json
import os

from support import descendants, poll


def test_g1_a_fork_bomb_is_bounded_and_ends(arena):
    result = arena.sh("bomb() { bomb | bomb & }; bomb; sleep 1; echo alive", "--pids", "60", "--timeout", "10s", "--grace", "200ms",
                      protect=False, timeout=60)
    assert result.returncode in (0, 124, 2), result
    poll(lambda: not descendants(), seconds=10, what="the end of every process")


def test_g1_the_limit_counts_the_tree_and_not_the_users_other_processes(arena):
    first = arena.cordon.start("run", "--pids", "12", "--root", str(arena.root), "--", "sh", "-c", "for i in 1 2 3 4 5 6; do sleep 20 & done; echo up; wait",
                               cwd=arena.root)
    assert first.stdout.readline() == b"up\n"
    second = arena.sh("for i in 1 2 3 4 5 6; do sleep 0.1 & done; wait && echo fine", "--pids", "12", protect=False)
    assert second.stdout == "fine\n", second


MEMORY = "import os,time\nfor i in range(6):\n    if os.fork() == 0:\n        b = bytearray(40 << 20)\n        b[::4096] = b'x' * len(b[::4096])\n        time.sleep(60)\nprint('up', flush=True)\ntime.sleep(60)\n"


def test_g2_memory_holds_for_the_sum_and_the_whole_tree_ends(arena, box):
    result_file = box.path / "result.json"
    result = arena.cordon("run", "--root", str(arena.root), "--memory", "120M", "--timeout", "40s", "--grace", "100ms", "--result", str(result_file),
                          "--", "/usr/bin/python3", "-c", MEMORY, cwd=arena.root)
    value = json.loads(result_file.read_text())
    assert value["limits_hit"]["memory"] and not value["limits_hit"]["timeout"] and value["state"] == "failed", value
    assert result.returncode == 137, result
    poll(lambda: not descendants(), seconds=10, what="the end of every process")


def test_g2_one_process_cannot_exceed_the_limit(arena):
    result = arena.cordon("run", "--root", str(arena.root), "--memory", "100M", "--timeout", "20s", "--", "/usr/bin/python3", "-c",
                          "b = bytearray(400 << 20); b[::4096] = b'x' * len(b[::4096]); import time; time.sleep(10); print('got it')", cwd=arena.root)
    assert "got it" not in result.stdout and result.returncode == 137, result


def test_g3_private_file_systems_have_a_size_and_a_number_of_files(arena):
    before = os.statvfs("/tmp").f_bavail
    result = arena.sh("dd if=/dev/zero of=/tmp/fill bs=1M count=200 2>&1 | tail -1; dd if=/dev/zero of=/dev/shm/fill bs=1M count=200 2>&1 | tail -1; "
                      "rm -f /tmp/fill /dev/shm/fill; i=0; mkdir /tmp/d; while [ $i -lt 9000 ] && true >/tmp/d/$i; do i=$((i + 1)); done 2>/dev/null; echo files $i",
                      "--tmp-size", "16M", protect=False)
    written = [int(line.split()[0]) for line in result.stdout.splitlines() if "copied" in line]
    assert len(written) == 2 and sum(written) <= 16 << 20, result
    assert int(result.stdout.rsplit("files ", 1)[1]) < 9000, result
    assert abs(os.statvfs("/tmp").f_bavail - before) < before / 2
