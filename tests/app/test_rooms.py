"""The command line calls the report and the server; they do not know it, nor each other."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

APP = Path(str(files("xmtc.app")))
MAY_IMPORT = {"cli": {"cli", "report", "rest"}, "report": {"report"}, "rest": {"rest"}, "": set()}


@pytest.mark.parametrize("path", sorted(APP.rglob("*.py")), ids=lambda path: path.relative_to(APP).as_posix())
def test_rooms_are_entered_by_their_public_names(path: Path) -> None:
    room = path.parent.name if path.parent != APP else ""
    for target, inner in re.findall(r"from xmtc\.app\.(cli|report|rest)(\.\w+)? import", path.read_text()):
        assert target in MAY_IMPORT[room]
        assert not inner or target == room  # others import what the room's __init__ exports


def test_an_evaluation_without_a_report_loads_no_report(model: Path, data: Path) -> None:
    code = (
        "import sys; from xmtc.app.cli import main; "
        f"main(['evaluate', {str(model)!r}, {str(data)!r}]); print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(found.splitlines()[-1].split())
    assert "xmtc.app.details" in loaded
    assert not {"matplotlib", "fastapi", "xmtc.app.report", "xmtc.app.rest"} & loaded
