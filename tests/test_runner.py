# SPDX-License-Identifier: Apache-2.0
"""The runner of the tests (scripts/test): what it counts, and which tests it tries a second time."""
import importlib.machinery
import importlib.util
import pathlib
import textwrap

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent
LATE_ONCE = """
    import pathlib

    def test_late_once():
        mark = pathlib.Path(__file__).with_suffix(".mark")
        if not mark.exists():
            mark.touch()
            assert False, "late"

    def test_good():
        pass
"""
BROKEN = "def test_broken(): assert False\n"


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """scripts/test as a module, whose tests are those that a call writes below tests/."""
    loader = importlib.machinery.SourceFileLoader("cordon_runner", str(TOP / "scripts/test"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cordon_runner", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "TOP", tmp_path)

    def run(**files):
        (tmp_path / "tests").mkdir()
        (tmp_path / "build").mkdir()
        for name, text in files.items():
            (tmp_path / "tests" / f"test_{name}.py").write_text(textwrap.dedent(text))
        tally, text = module.pytest(tmp_path / "build", "it", "not serial", [], ["tests"])
        return tally.passed, tally.failed, text

    run.may_try_again = module.may_try_again
    return run


def test_a_test_that_passes_alone_is_named_and_counted_once(runner):
    passed, failed, text = runner(slow=LATE_ONCE)
    assert (passed, failed) == (2, 0)
    assert "unsteady tests/test_slow.py::test_late_once: failed beside others, passed alone" in text and "late" in text


def test_what_fails_twice_has_failed(runner):
    passed, failed, text = runner(slow=LATE_ONCE, bad=BROKEN)
    assert (passed, failed) == (2, 1)
    assert "unsteady tests/test_slow.py" in text and "unsteady tests/test_bad.py" not in text


@pytest.mark.parametrize("name", ["attacks", "races", "kills", "crash", "matrix", "hostile", "random"])
def test_attacks_races_and_kills_have_one_try(runner, name):
    assert runner.may_try_again({"tests/e2e/test_run.py::test_it"})
    assert not runner.may_try_again({"tests/e2e/test_run.py::test_it", f"tests/e2e/test_{name}.py::test_it[user]"})


def test_many_failures_have_one_try(runner):
    many = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_broken(n): assert False\n"
    passed, failed, text = runner(slow=LATE_ONCE, bad=many)
    assert (passed, failed) == (1, 5) and "unsteady" not in text


def test_all_good_prints_nothing(runner):
    assert runner(fine="def test_good(): pass\n") == (1, 0, "")
