"""What `xmtc.data` exports is there, and a module never takes the place of a function of its name."""

from __future__ import annotations

import pkgutil

import pytest

from xmtc import data


def test_every_public_name_is_there() -> None:
    for name in data.__all__:
        assert getattr(data, name) is not None
    assert data._LAZY.keys() < set(data.__all__) <= set(dir(data))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        data.nothing  # noqa: B018


def test_no_public_name_is_a_modules_name() -> None:
    modules = {found.name for found in pkgutil.iter_modules(data.__path__)}
    assert modules.isdisjoint(data.__all__)
