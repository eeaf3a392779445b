"""How the tests share the cores: those that share costly fixtures stay in one process, and long modules start first."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background: commands under test would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONG = ("tests/engines/test_ray.py",)  # few tests, minutes: started last, they would keep one process busy alone


def pytest_collection_modifyitems(items):
    """Order the modules: long ones, then those with the most tests; within a module, the order stays."""
    modules = [item.nodeid.partition("::")[0] for item in items]
    sizes = Counter(modules)
    order = sorted(range(len(items)), key=lambda i: (modules[i] not in LONG, -sizes[modules[i]], modules[i], i))
    items[:] = [items[i] for i in order]


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which a run in one process does without
def pytest_xdist_make_scheduler(config, log):
    """Keep a module's tests together, the contract battery's by method: each method trains its model once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module, _, test = nodeid.partition("::")
            return module + test.partition("[")[2] if module.endswith("test_contract.py") else module

    config.option.loadscopereorder = False  # `pytest_collection_modifyitems` has ordered them
    return ByModule(config, log)
