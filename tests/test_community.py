"""Files for contributors and the forge: they parse, and what they call or link to exists."""

from __future__ import annotations

import datetime
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import xmtc
from xmtc.core.config import read_toml

yaml = pytest.importorskip("yaml", reason="pyyaml reads workflows and CITATION.cff")
ROOT = Path(__file__).parent.parent
PAGES = ("CONTRIBUTING.md", "RELEASING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
EXTRAS = read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = set(re.findall(r"^([a-z]+):", text, re.MULTILINE))
    return found if (ROOT / "mkdocs.yml").exists() else found | {"docs"}  # that target comes with the site


def wrong(command: str) -> list[str]:
    """What a command line calls that does not exist; empty if all is well."""
    words = shlex.split(command, comments=True)
    if not words:
        return []
    found = []
    program = words[0].removeprefix(".venv/bin/")
    if program == "make":
        found += [f"make {target}" for target in words[1:] if "=" not in target and target not in make_targets()]
    if "-m" in words and program.startswith("python"):
        module = words[words.index("-m") + 1]
        if module.partition(".")[0] in ("scripts", "benchmarks", "tests"):
            path = ROOT / module.replace(".", "/")
            found += [] if path.with_suffix(".py").exists() or path.is_dir() else [f"module {module}"]
    for word in words:
        file = word.partition("::")[0]
        if re.match(r"(tests|scripts|docs|src|benchmarks)/", file) and not (ROOT / file).exists():
            found.append(file)
        if extras := re.search(r"\[([\w,]+)\]", word if word.startswith((".[", "xmtc[")) else ""):
            found += [f"extra {extra}" for extra in extras[1].split(",") if extra not in EXTRAS]
    return found


def commands(page: str) -> list[str]:
    """The indented lines of a page, which are commands."""
    return [line.strip() for line in page.splitlines() if re.match(r"( {4}|\t| {7})\S", line)]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("make tets", ["make tets"]),
        ("make PYTHON=python3.12 test", []),
        ("python -m scripts.relaese", ["module scripts.relaese"]),
        ("pytest tests/no_such.py::test_a", ["tests/no_such.py"]),
        ('python -m pip install -e ".[parquet,nueral]"', ["extra nueral"]),
    ],
)
def test_mistakes_are_found(command: str, complaint: list[str]) -> None:
    assert wrong(command) == complaint


@pytest.mark.parametrize("name", PAGES)
def test_pages_link_to_and_call_what_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        file, _, anchor = target.partition("#")
        if "://" not in target:
            assert (ROOT / name).parent.joinpath(file).exists(), target
            headings = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
            assert not anchor or anchor in [re.sub(r"\W+", "-", heading.lower()) for heading in headings], target
    assert [problem for command in commands(text) for problem in wrong(command)] == []


def test_the_tests_that_contributors_are_shown_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = re.findall(r"(tests/\S+\.py)::(\w+)", text)
    assert shown
    for file, name in shown:
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_parse_and_call_what_exists(path: Path) -> None:
    workflow = load(path)
    assert {"name", True, "permissions", "jobs"} <= workflow.keys()  # YAML reads the key `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/checkout@v4")), step
            assert wrong(step.get("run", "")) == []
    assert path.read_text(encoding="utf-8").startswith("# Not yet seen running")


def test_workflows_cover_the_supported_pythons_and_systems() -> None:
    jobs = load(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    project = read_toml(ROOT / "pyproject.toml")["project"]
    declared = {name.rpartition(" ")[2] for name in project["classifiers"] if re.search(r":: 3\.\d+$", name)}
    assert {tuple(job["strategy"]["matrix"]["python"]) for job in jobs.values()} == {tuple(sorted(declared))}
    assert min(declared) == project["requires-python"].removeprefix(">=")
    systems = {jobs["linux"]["runs-on"], *jobs["others"]["strategy"]["matrix"]["system"]}
    assert systems == {"ubuntu-latest", "macos-latest", "windows-latest"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_parse(path: Path) -> None:
    form = load(path)
    assert {"name", "description", "body"} <= form.keys()
    asked = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert asked
    assert len(asked) == len(set(asked))
    assert all(field["attributes"].get("label") or field["attributes"].get("value") for field in form["body"])


def test_hooks_call_the_linters_of_make_lint() -> None:
    hooks = [hook for repo in load(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert len(hooks) == 3
    for hook in hooks:
        command = hook["entry"].removeprefix(".venv/bin/").removesuffix(" --force-exclude")
        assert f"$(BIN)/{command}\n" in makefile
        assert hook["language"] == "system"


def test_citation_is_valid() -> None:
    """The fields that the Citation File Format 1.2 requires, and the forms it gives them."""
    citation = load(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    assert citation["type"] in ("software", "dataset")
    assert citation["version"] == xmtc.__version__
    assert citation["license"] == read_toml(ROOT / "pyproject.toml")["project"]["license"]
    assert datetime.date.fromisoformat(str(citation["date-released"]))
    for author in citation["authors"]:  # an entity has a name, a person family and given names
        assert set(author) == {"name"} or "family-names" in author
    known = {"cff-version", "message", "type", "title", "abstract", "authors", "version", "date-released", "license"}
    assert citation.keys() <= known | {"keywords", "doi", "url", "repository-code", "references", "preferred-citation"}
