from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xmtc.core.errors import DataError

PAGE = (Path(__file__).parents[2] / "docs" / "DATA.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Write the files that a section of docs/DATA.md shows, and run its Python, in a new folder."""

    def write(section: str) -> Path:
        (body,) = re.findall(rf"^## {re.escape(section)}\n(.+?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
        folder = tmp_path / "example"
        folder.mkdir()
        for names, language, content in re.findall(
            r"^(`[^\n]+`):\n\n```(\w+)\n(.+?)^```", body, re.MULTILINE | re.DOTALL
        ):
            if language == "python":
                with monkeypatch.context() as patch:
                    patch.chdir(folder)
                    exec(content)
                assert all((folder / name).is_file() for name in re.findall("`(.+?)`", names))
            else:
                path = folder / names.strip("`")
                path.parent.mkdir(exist_ok=True)
                path.write_text(content, encoding="utf-8")
        return folder

    return write


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
