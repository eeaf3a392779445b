from __future__ import annotations

import pytest

from xmtc.core.errors import ConfigError
from xmtc.core.memory import memory_limit, return_memory


@pytest.mark.parametrize(("given", "size"), [("800", 800), ("3k", 3072), ("8G", 8 * 2**30), (" 2MB ", 2 * 2**20)])
def test_the_limit_is_what_the_user_says(given: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_MEMORY", given)
    assert memory_limit() == size


def test_the_limit_is_the_machines_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XMTC_MEMORY", raising=False)
    assert 2**26 < memory_limit() < 2**50
    return_memory()  # does no harm


@pytest.mark.parametrize("given", ["much", "0", "-1G", "1.5G", "G", "8X"])
def test_what_is_no_size_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_MEMORY", given)
    with pytest.raises(ConfigError, match="XMTC_MEMORY must be a size such as 800M or 8G"):
        memory_limit()
