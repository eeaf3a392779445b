"""How the tests share the cores: those that share costly fixtures stay in one process."""

from __future__ import annotations

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background: commands under test would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which a run in one process does without
def pytest_xdist_make_scheduler(config, log):
    """Keep a module's tests together, the contract battery's by method: each method trains its model once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module, _, test = nodeid.partition("::")
            return module + test.partition("[")[2] if module.endswith("test_contract.py") else module

    return ByModule(config, log)
