"""The examples in docstrings of what users call run and print what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import xmtc

# of the functions that README and the tutorials use, each has an example
SHOWN = {"train", "load", "evaluate", "compare", "ensemble", "update", "calibrate", "read_corpus", "suggest"}
MODULES = ("xmtc.api", "xmtc.data.read", "xmtc.core.steering", "xmtc.core.corpus", "xmtc.core.ranking")
EXAMPLES = {
    test.name: test
    for module in (*MODULES, "xmtc.core.explanation")
    for test in doctest.DocTestFinder(exclude_empty=True).find(import_module(module))
    if test.examples
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    test = EXAMPLES[name]
    test.globs = {}  # an example shows its own imports
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failed = []
    runner.run(test, out=failed.append)
    assert runner.failures == 0, "".join(failed)


def test_what_users_call_has_an_example() -> None:
    assert {name for name in SHOWN if ">>>" not in (getattr(xmtc, name).__doc__ or "")} == set()
