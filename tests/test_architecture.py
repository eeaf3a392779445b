"""The worked examples of docs/ARCHITECTURE.md work as the page shows them, and its tree of files is true.

The page's code blocks are the only copy of the examples: they are written into a copy of the package, where the page
says, and that copy is used. Nothing here needs numba's kernels or torch, so that it is quick.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
# what the battery and the tests of layouts need; nothing that imports torch
TESTS = ("__init__.py", "conftest.py", "tiny.py", "methods/__init__.py", "methods/test_contract.py")
TESTS += ("data/__init__.py", "data/conftest.py", "data/test_conversion.py")

Said = dict[str, tuple[int, str, str]]  # command → exit code, stdout, stderr

_BLOCK = re.compile(r"^(New file|Change) `([^`]+)`:\n\n```(python|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TREE = re.compile(r"^```text\n((?:src/xmtc|benchmarks)/.*?)^```$", re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return found


def change(text: str, diff: str) -> str:
    """A text after a diff of one hunk, whose old lines must be there exactly once."""
    lines = diff.splitlines(keepends=True)
    old, new = ("".join(line[1:] for line in lines if line[0] in signs) for signs in (" -", " +"))
    assert text.count(old) == 1, f"the page's diff does not apply; these lines must be there once:\n{old}"
    return text.replace(old, new)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository's sources and of a few tests, with all examples of the page."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "DATA.md", folder / "docs")  # read by the tests of layouts
    for name in TESTS:
        (folder / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / name, folder / "tests" / name)
    for what, name, language, content in _BLOCK.findall(PAGE):
        path = folder / name
        assert path.exists() == (what == "Change"), f"{what} {name}"
        assert language == ("python" if what == "New file" else "diff")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if what == "New file" else change(path.read_text(), content), encoding="utf-8")
    return folder


def run(copy: Path, *arguments: object, code: int = 0, given: str = "") -> str:
    """What a new Python prints that sees the copy's package."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "XMTC_CACHE": str(copy / "cache")}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=copy, env=environment, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tested(copy: Path) -> dict[str, str | None]:
    """The contract battery on the example's method and the tests of conversion on its layout: test → why it failed."""
    results = copy / "results.xml"
    files = ("tests/methods/test_contract.py", "tests/data/test_conversion.py")
    options = ("-q", "-p", "no:cacheprovider", f"--junitxml={results}", "-k", "[frequency] or [fasttext]")
    run(copy, "-m", "pytest", *options, *files, code=1)  # 1: some fail, as the page says
    found: dict[str, str | None] = {}
    for case in ET.parse(results).iter("testcase"):
        assert case.find("skipped") is None, case.attrib
        assert case.find("error") is None, case.attrib
        failure = case.find("failure")
        found[case.attrib["name"]] = None if failure is None else failure.attrib["message"]
    return found


def test_every_example_has_its_blocks() -> None:
    blocks = {title: [what for what, *_ in _BLOCK.findall(section(title))] for title in EXAMPLES}
    assert blocks == EXAMPLES
    assert len(_BLOCK.findall(PAGE)) == sum(map(len, EXAMPLES.values()))
    assert PAGE.count("```python\n") + PAGE.count("```diff\n") == len(_BLOCK.findall(PAGE))  # none is left out


EXAMPLES = {
    "Add a method": ["New file", "New file", "Change", "Change"],
    "Add a layout": ["New file", "Change"],
    "Add a metric": ["Change"],
    "Add a route": ["New file", "Change", "Change"],
}


def test_new_files_pass_the_linter(copy: Path) -> None:
    files = [name for what, name, *_ in _BLOCK.findall(PAGE) if name.startswith("src/")]
    run(copy, "-m", "ruff", "check", "--no-cache", *files)
    run(copy, "-m", "ruff", "format", "--no-cache", "--check", *files)


# Add a method


def test_the_method_keeps_the_contract_but_for_what_the_page_says(tested: dict[str, str | None]) -> None:
    """The whole battery is run; exactly the tests that the page's table names fail, each by an assertion."""
    found = {name: why for name, why in tested.items() if name.endswith("[frequency]")}
    battery = re.findall(r"^def (test_\w+)\(", (ROOT / "tests" / "methods" / "test_contract.py").read_text(), re.M)
    assert found.keys() == {f"{test}[frequency]" for test in battery}
    broken = {name.removesuffix("[frequency]"): why for name, why in found.items() if why is not None}
    assert sorted(broken) == sorted(re.findall(r"^\| `(test_\w+)` \|", section("Add a method"), re.M))
    for why in broken.values():
        assert re.match(r"(AssertionError: )?assert ", why)


TRAIN_AND_RANK = """
import json
import sys
import xmtc

texts = ["sugar imports", "sugar quotas", "fishing boats"]
corpus = xmtc.Corpus.from_lists(texts, [["sugar"], ["sugar"], ["fish"]])
model = xmtc.train(corpus, "frequency", {"smoothing": 0}, out="model-of-a-script")
loaded = xmtc.load("model-of-a-script")
print(json.dumps({
    "ranked": dict(loaded.rank(["any text"], 3).named(loaded.labels)[0]),
    "n_labelled": loaded.manifest.details.n_labelled,
    "explained": loaded.explain("any text", "fish").score,
    "P@1": xmtc.evaluate(loaded, corpus)["P@1"],
    "heavy": sorted({"torch", "numba"} & sys.modules.keys()),
}))
"""


def test_the_method_trains_loads_and_ranks(copy: Path) -> None:
    found = json.loads(run(copy, "-c", TRAIN_AND_RANK))
    assert list(found["ranked"]) == ["sugar", "fish"]
    assert found["ranked"] == pytest.approx({"sugar": 2 / 3, "fish": 1 / 3}, rel=1e-6)
    assert found["explained"] == found["ranked"]["fish"]
    assert found["n_labelled"] == 3
    assert found["P@1"] == pytest.approx(200 / 3)
    assert found["heavy"] == []


@pytest.fixture(scope="module")
def data(copy: Path) -> Path:
    """A data set in fastText's format: one label with 25 documents, three with few."""
    folder = copy / "data"
    folder.mkdir()
    (folder / "train.txt").write_text("".join(f"{line}\n" for line in TRAIN), encoding="utf-8")
    (folder / "test.txt").write_text("__label__fish boats\n__label__sugar beets\n__label__new \n", encoding="utf-8")
    return folder


TRAIN = [
    "__label__sugar __label__trade quotas\tfor imports",
    "__label__fish __label__sea ü",
    "__label__sugar",
    "no label",
    "__label__sugar  two spaces",
    "__label__fish __label__sugar ",
    *(f"__label__sugar document {i}" for i in range(21)),
]

COMMANDS = """
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from xmtc.app.cli import main

for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


@pytest.fixture(scope="module")
def said(copy: Path, data: Path) -> Said:
    """What commands of the copy's command line say, all run in one process."""
    bad = {
        "empty label": {"train.txt": "__label__a one\n__label__ two\n"},
        "text": {"train.jsonl": '{"text": "__label__b c", "labels": ["a"]}\n'},
        "label": {"train.jsonl": '{"text": "c", "labels": ["a b"]}\n'},
    }
    commands: dict[str, list[object]] = {
        "train": ["train", data, "--method", "frequency", "--out", copy / "model"],
        "predict": ["predict", copy / "model", "text", "--json"],
        "train help": ["train", "--help"],
        "evaluate": ["evaluate", copy / "model", data, "--split", "test"],
        "evaluate as JSON": ["evaluate", copy / "model", data, "--split", "test", "--json"],
        "inspect": ["inspect", data],
        "inspect a file": ["inspect", data / "train.txt"],
        "convert": ["data", "convert", data, "--out", copy / "native", "--to", "native"],
        "convert back": ["data", "convert", copy / "native", "--out", copy / "back", "--to", "fasttext"],
    }
    for name, files in bad.items():
        folder = copy / f"bad {name}"
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_text(content)
        commands[name] = ["data", "convert", folder, "--out", copy / f"out {name}", "--to", "fasttext"]
    given = json.dumps([[str(argument) for argument in arguments] for arguments in commands.values()])
    lines = run(copy, "-c", COMMANDS, given=given).splitlines()
    return {name: tuple(json.loads(line)) for name, line in zip(commands, lines, strict=True)}


@pytest.fixture(scope="module")
def model(copy: Path, said: Said) -> Path:
    """The example's method, trained by the command line on data in the example's layout."""
    assert said["train"][0] == 0, said["train"]
    return copy / "model"


def test_the_command_line_knows_the_method(said: Said) -> None:
    code, out, _ = said["predict"]
    assert code == 0
    assert [label["label"] for label in json.loads(out)["labels"]] == ["sugar", "fish", "sea", "trade"]
    assert "frequency" in said["train help"][1]


# Add a layout


READ = """
import json
import sys
from xmtc.data import read_corpus

corpus = read_corpus(sys.argv[1])
print(json.dumps([[text, corpus.labels.decode(row.indices)] for text, row in zip(corpus.texts, corpus.Y)]))
"""


def test_the_layout_is_detected_and_read(copy: Path, data: Path, said: Said) -> None:
    for name in ("inspect", "inspect a file"):
        assert said[name][0] == 0
        assert "fasttext" in said[name][1]
    assert json.loads(run(copy, "-W", "ignore", "-c", READ, data))[:7] == [
        ["quotas\tfor imports", ["sugar", "trade"]],
        ["ü", ["fish", "sea"]],
        ["", ["sugar"]],
        ["no label", []],
        [" two spaces", ["sugar"]],
        ["", ["fish", "sugar"]],
        ["document 0", ["sugar"]],
    ]


def test_the_layout_is_written(copy: Path, said: Said) -> None:
    assert (said["convert"][0], said["convert back"][0]) == (0, 0)
    written = (copy / "back" / "train.txt").read_text(encoding="utf-8").splitlines()
    assert written == [line.replace("\t", " ") + " " * (line == "__label__sugar") for line in TRAIN]


def test_the_layout_passes_the_tests_of_all_layouts(tested: dict[str, str | None]) -> None:
    found = {name: why for name, why in tested.items() if name.endswith("[fasttext]")}
    assert len(found) >= 3
    assert not any(found.values())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty label", "train.txt, line 2: 'labels' must hold strings"),
        ("text", "would read as a label; choose another"),
        ("label", "label 'a b' does not fit: the fasttext layout"),
    ],
)
def test_the_layout_refuses(said: Said, name: str, message: str) -> None:
    code, _, err = said[name]
    assert code == 2
    assert message in err


# Add a metric


MEASURE = """
import json
import sys
import xmtc
from xmtc.core.metrics import METRICS, DocumentMetric, compared_keys, metric_keys, metrics_of, title_of

model = xmtc.load(sys.argv[1])
test = xmtc.read_corpus(sys.argv[2], "test")
report = xmtc.evaluate(model, test)
other = xmtc.train(xmtc.Corpus.from_lists(["a", "b"], [["new"], ["other"]]), "frequency")
compared = xmtc.compare({"model": model, "other": other}, test)
keys = ["hit@1", "hit@3", "hit@5"]
print(json.dumps({
    "values": [report[key] for key in keys],
    "intervals": [report.intervals[key] for key in keys],
    "compared": [vars(compared.differences["other"][key]) for key in keys],
    "keys": set(keys) <= set(metric_keys()) and METRICS["hit"] in metrics_of(DocumentMetric, listed=True),
    "listed": [key for key in compared_keys() if key in keys],
    "title": title_of("hit@3"),
}))
"""


def test_the_metric_is_measured_everywhere(copy: Path, data: Path, model: Path) -> None:
    found = json.loads(run(copy, "-c", MEASURE, model, data))
    # the model ranks sugar, fish, sea, trade; the test documents are fish, sugar and one label that it never saw
    assert found["values"] == pytest.approx([100 / 3, 200 / 3, 200 / 3])
    for value, (low, high) in zip(found["values"], found["intervals"], strict=True):
        assert 0 <= low < value < high <= 100
    assert [one["difference"] for one in found["compared"]] == pytest.approx([0, -100 / 3, -100 / 3])
    assert found["keys"]
    assert found["listed"] == ["hit@5"]
    assert found["title"] == "documents with a right label among the first three"


def test_the_metric_is_in_tables(said: Said) -> None:
    assert re.search(r"\bhit\b", said["evaluate"][1])
    assert json.loads(said["evaluate as JSON"][1])["metrics"]["hit@3"] == pytest.approx(200 / 3)


# Add a route


ASK = """
import json
import sys
from pathlib import Path

from fastapi.testclient import TestClient

from xmtc.app.rest.application import build_application
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.models import Models

metrics = Metrics()
models = Models({"model": Path(sys.argv[1])}, 100, 10, metrics)
with_token, open_to_all = (TestClient(build_application(models, metrics, token, 10)) for token in ("secret", None))
answers = [
    open_to_all.get("/v1/models/model/bins"),
    open_to_all.get("/v1/models/modell/bins"),
    with_token.get("/v1/models/model/bins"),
]
print(json.dumps([[answer.status_code, answer.json()] for answer in answers]))
print(json.dumps(open_to_all.get("/openapi.json").json()["paths"]["/v1/models/{name}/bins"]["get"]))
models.close()
"""


def test_the_route_answers(copy: Path, model: Path) -> None:
    pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")
    answers, described = map(json.loads, run(copy, "-c", ASK, model).splitlines())
    (told,) = re.findall(r"^```json\n(.*?)^```", section("Add a route"), re.M | re.S)
    assert answers[0] == [200, json.loads(told)]
    assert answers[1][0] == 404
    assert "Did you mean 'model'?" in answers[1][1]["detail"]
    assert answers[2][0] == 401
    assert described["summary"] == "Count Bins"
    assert set(described["responses"]) == {"200", "401", "404"}


# The page's tree of files


def tree() -> Iterator[str]:
    """Every path that the page's trees name, from the root of the repository."""
    for block in _TREE.findall(PAGE):
        folders: list[str] = []
        for line in block.splitlines():
            name = line.split()[0]
            depth = (len(line) - len(line.lstrip())) // 2
            folders[depth:] = [name]
            yield "".join(folders)


def test_the_tree_names_what_there_is() -> None:
    named = list(tree())
    assert len(named) == len(set(named))
    assert {"src/xmtc/", "src/xmtc/core/metrics/registry.py", "benchmarks/framework/", "docs/methods/"} <= set(named)
    for name in named:
        path = ROOT / name
        assert path.is_dir() if name.endswith("/") else path.is_file(), name


def test_the_tree_names_every_folder() -> None:
    folders = {
        f"{path.relative_to(ROOT).as_posix()}/"
        for path in (ROOT / "src" / "xmtc").rglob("*")
        if path.is_dir() and path.name != "__pycache__"
    }
    assert folders - set(tree()) == set()


@pytest.mark.parametrize(("title", "column"), [("Central types", 0), ("One document, from file to ranking", 1)])
def test_tables_name_the_right_files(title: str, column: int) -> None:
    """What a row of types or steps names is in one of the row's files."""
    rows = [line.strip("|").split(" | ") for line in section(title).splitlines() if line.startswith("| ")]
    assert len(rows) > 10
    for row in rows:
        files = re.findall(r"`([\w/]+\.py)`", row[-1])
        sources = "".join((ROOT / "src" / "xmtc" / file).read_text(encoding="utf-8") for file in files)
        for name in re.findall(r"`([\w.]+)`", row[column]) if files else ():
            assert all(re.search(rf"\b{part}\b", sources) for part in name.split(".")), f"{name} is not in {files}"
