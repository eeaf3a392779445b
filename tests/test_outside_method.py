"""A method in a package of its own: the baseline of docs/ARCHITECTURE.md, installed into a folder, as the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")


def block(kind: str, after: str) -> str:
    """The first code block of a kind after some words of the page."""
    found = re.search(rf"^```{kind}\n(.*?)^```$", PAGE[PAGE.index(after) :], re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the package as an installer would leave it."""
    folder = tmp_path_factory.mktemp("site")
    package = folder / "xmtc_frequency"
    package.mkdir()
    for name in ("method.py", "__init__.py"):
        source = block("python", f"New file `src/xmtc/methods/frequency/{name}`")
        (package / name).write_text(source.replace("xmtc.methods.frequency", "xmtc_frequency"), encoding="utf-8")
    project = tomllib.loads(block("toml", "### In a package of your own"))["project"]
    info = folder / f"xmtc_frequency-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in of.items()) for group, of in groups]
    (info / "entry_points.txt").write_text("".join(lines))
    broken = folder / "broken-1.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (broken / "entry_points.txt").write_text(
        "[xmtc.methods]\nabsent = no_such_module:METHOD\nother = xmtc_frequency:METHOD\n"
    )
    return folder


def run(site: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(ROOT / "src"), str(ROOT)])
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def model(site: Path) -> Path:
    """Trained by the command line."""
    rows = [{"text": f"text {i}", "labels": ["often" if i % 3 else "seldom"]} for i in range(9)]
    for split in ("train", "test"):
        (site / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(site, "-m", "xmtc", "train", site, "--method", "frequency", "--out", site / "model")
    assert done.returncode == 0, done.stderr
    return site / "model"


def test_it_trains_loads_evaluates_and_is_listed(site: Path, model: Path) -> None:
    found = run(site, "-W", "ignore", "-m", "xmtc", "evaluate", model, site, "--json")
    assert json.loads(found.stdout)["metrics"]["P@1"] == pytest.approx(200 / 3)
    predicted = json.loads(run(site, "-m", "xmtc", "predict", model, "a text", "--json").stdout)
    assert [label["label"] for label in predicted["labels"]] == ["often", "seldom"]
    assert "frequency" in run(site, "-m", "xmtc", "train", "--help").stdout


SERVE = """
import sys
from pathlib import Path
from fastapi.testclient import TestClient
from xmtc.app.rest.application import build_application
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.models import Models

metrics = Metrics()
models = Models({"model": Path(sys.argv[1])}, 100, 10, metrics)
client = TestClient(build_application(models, metrics, None, 10))
print(client.post("/v1/models/model/suggest", json={"texts": ["a text"]}).text)
models.close()
"""


def test_it_is_served(site: Path, model: Path) -> None:
    pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")
    done = run(site, "-c", SERVE, model)
    (found,) = json.loads(done.stdout)["results"]
    assert [label["label"] for label in found["labels"]] == ["often", "seldom"]


def test_it_passes_the_part_of_the_battery_that_it_owes(site: Path) -> None:
    command = block("sh", "### In a package of your own")
    assert command.startswith("XMTC_CONTRACT=frequency pytest ")
    options = ["tests/methods/test_contract.py", "-k", "[frequency]", "-m", "not words"]
    assert all(option in command for option in options)
    quiet = ("-p", "no:cacheprovider", "-p", "no:xdist")
    done = run(site, "-m", "pytest", *quiet, *options, XMTC_CONTRACT="frequency")
    assert done.returncode == 0, done.stdout
    battery = (ROOT / "tests" / "methods" / "test_contract.py").read_text(encoding="utf-8")
    owed = len(re.findall(r"^def test_", battery, re.M)) - battery.count("@pytest.mark.words\n")
    passed = re.match(r"\.*", done.stdout)  # one dot for each test
    assert passed
    assert len(passed[0]) == owed >= 12


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "method 'absent' cannot be imported from no_such_module:METHOD: ModuleNotFoundError"),
        ("other", "xmtc_frequency:METHOD is not a method called 'other'"),
        ("frequenzy", "unknown method 'frequenzy'. Did you mean 'frequency'?"),
    ],
)
def test_mistakes_are_one_line(site: Path, name: str, message: str) -> None:
    done = run(site, "-m", "xmtc", "train", site, "--method", name, "--out", site / "x")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_model_of_a_method_that_is_not_installed_is_refused(model: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "xmtc", "predict", model, "a text")
    assert done.returncode == 2
    assert "was made by method 'frequency', which is not installed" in done.stderr
