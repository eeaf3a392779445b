from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xmtc.core.errors import DataError


@pytest.fixture
def refusal() -> Callable[..., str]:
    """Call a function that must refuse its data, and return the one line it says."""

    def call(function: Callable[..., Any], *arguments: Any) -> str:
        with pytest.raises(DataError) as caught:
            function(*arguments)
        message = str(caught.value)
        assert "\n" not in message
        return message

    return call


@pytest.fixture
def shared_data() -> Path:
    """The real data sets of development, where they are there."""
    root = Path(os.environ.get("XMTC_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not root.is_dir():
        pytest.skip("the development data sets are not here; set XMTC_DATA to their folder")
    return root
