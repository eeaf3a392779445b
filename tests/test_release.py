"""The release script: what it refuses, what the wheel must hold, and, if slow tests run, the whole of it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import xmtc
from scripts import release, smoke
from xmtc.core.config import read_toml

ROOT = Path(__file__).parent.parent
METADATA = "".join(
    f"{field}: x\n"
    for field in (
        "Requires-Python",
        "License-Expression",
        "Summary",
        "Keywords",
        "Classifier",
        "Description-Content-Type",
    )
)


def changelog(*headings: str, unreleased: str = "") -> str:
    return "# Changelog\n\n" + "\n\n".join(f"## {heading}\n{unreleased}" for heading in headings) + "\n"


def test_the_versions_of_this_checkout_agree() -> None:
    assert release.read_version(ROOT) == xmtc.__version__


def test_the_changelog_has_a_section_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    names = [found["version"] for found in release._HEADING.finditer(text)]
    assert names[:2] == ["Unreleased", xmtc.__version__]
    kinds = {line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")}
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_a_complete_changelog_is_accepted() -> None:
    release.check_changelog(changelog("[Unreleased]", "[1.2.0] - 2026-01-31"), "1.2.0")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (changelog("[1.2.0] - 2026-01-31"), r"must start with \[Unreleased\] and \[1.2.0\]"),
        (changelog("[Unreleased]", "[1.1.0] - 2026-01-31"), "it starts with Unreleased, 1.1.0"),
        (changelog("[Unreleased]", "[1.2.0]"), "needs a date"),
        (changelog("[Unreleased]", "[1.2.0] - soon"), "needs a date"),
        (changelog("[Unreleased]", "[1.2.0] - 2026-01-31", unreleased="- new"), "entries under"),
    ],
)
def test_a_wrong_changelog_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(release.ReleaseError, match=complaint):
        release.check_changelog(text, "1.2.0")


def test_versions_that_differ_are_refused(tmp_path: Path) -> None:
    (tmp_path / "src" / "xmtc").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "src" / "xmtc" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text('version: "1.1.0"\n')
    with pytest.raises(release.ReleaseError, match=r"CITATION\.cff does not have version 1\.2\.0"):
        release.read_version(tmp_path)


def test_a_changed_tree_and_a_taken_tag_are_refused(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    git("tag", "v1.0.0")
    release.check_tree(tmp_path, "1.0.0")  # the tag is here
    git("commit", "--allow-empty", "-m", "second")
    with pytest.raises(release.ReleaseError, match=r"tag v1\.0\.0 exists at another commit"):
        release.check_tree(tmp_path, "1.0.0")
    (tmp_path / "new.txt").touch()
    with pytest.raises(release.ReleaseError, match=r"not clean: \?\? new\.txt"):
        release.check_tree(tmp_path, "1.1.0")


def test_what_a_wheel_lacks_or_has_too_much_is_found(tmp_path: Path) -> None:
    package = tmp_path / "src" / "xmtc"
    (package / "recipes").mkdir(parents=True)
    (package / "__pycache__").mkdir()
    for name in ("__init__.py", "recipes/a.toml", "__pycache__/a.pyc"):
        (package / name).touch()
    wheel = tmp_path / "xmtc.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("xmtc/__init__.py", "tests/test_a.py", "xmtc-1.dist-info/licenses/LICENSE"):
            archive.writestr(name, "")
        archive.writestr("xmtc-1.dist-info/METADATA", METADATA.replace("Summary: x\n", ""))
    assert release.check_wheel(wheel, tmp_path / "src") == [
        "lacks xmtc/recipes/a.toml",
        "contains tests/test_a.py, which is not part of the package",
        "its metadata lacks Summary",
    ]


def test_the_wheel_of_this_checkout_is_complete(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert release.check_wheel(wheel, ROOT / "src") == []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        licence = archive.read(f"xmtc-{xmtc.__version__}.dist-info/licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert "xmtc/py.typed" in names
    assert "xmtc/app/web/index.html" in names
    assert "xmtc/recipes/linear/fast.toml" in names
    assert [name for name in names if name.split("/")[0] not in ("xmtc", f"xmtc-{xmtc.__version__}.dist-info")] == []


def test_every_extra_is_tried_or_has_a_reason() -> None:
    extras = read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    assert set(extras) == smoke.MISSING.keys() | smoke.UNTRIED.keys()
    assert not smoke.MISSING.keys() & smoke.UNTRIED.keys()


def test_a_message_without_the_command_is_a_failure(tmp_path: Path) -> None:
    """With all extras installed, nothing is missing: the checks must say so, each in its own way."""
    silent = smoke.MissingExtra(code="raise SystemExit('please install something')")
    assert "no pip command" in str(smoke._without(Path(sys.executable), tmp_path, "stack", silent))
    works = smoke.MissingExtra(command=("--version",))
    assert "expected exit code 2 and one line" in str(smoke._without(Path(sys.executable), tmp_path, "stack", works))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_release_is_ready(tmp_path: Path) -> None:
    """Needs a package index."""
    release.release(tmp_path / "dist", any_tree=True)
    assert sorted(path.suffix for path in (tmp_path / "dist").iterdir()) == [".gz", ".whl"]
