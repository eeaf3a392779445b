"""Check, build and try a release: `python -m scripts.release`, or `make release`.

It checks that the work tree is clean and that version and changelog agree, builds the sdist and the wheel, checks the
contents of the wheel, installs it into an empty virtual environment without extras, and tries it there
(`scripts/smoke.py`). It uploads nothing and creates no tag: RELEASING.md lists the steps that follow.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Sequence
from email.parser import HeaderParser
from pathlib import Path

from scripts.smoke import try_extras, try_package

ROOT = Path(__file__).parent.parent
_HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\S+))?$", re.MULTILINE)
_TOOLS = ("build>=1.2", "twine>=6")
_CACHES = ("__pycache__", ".pyc", ".nbi", ".nbc")


class ReleaseError(Exception):
    """A release must not be made; the message says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all checks; return 0 if the release is ready, else 1."""
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", default="dist", metavar="FOLDER", help="where to put the sdist and the wheel")
    parser.add_argument("--any-tree", action="store_true", help="skip the checks of git and changelog, as CI does")
    options = parser.parse_args(arguments)
    try:
        release(Path(options.out), any_tree=options.any_tree)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def release(out: Path, *, any_tree: bool = False) -> None:
    """Check, build and try the release; raise ReleaseError at the first problem."""
    version = read_version(ROOT)
    if not any_tree:
        check_tree(ROOT, version)
        check_changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
        print(f"version {version}: clean tree, changelog agrees")
    with tempfile.TemporaryDirectory(prefix="xmtc-release-") as name:
        folder = Path(name)
        tools = make_environment(folder / "tools", *_TOOLS)
        built = build(tools, folder / "dist")
        wheel = next(path for path in built if path.suffix == ".whl")
        print_contents(wheel)
        problems = check_wheel(wheel, ROOT / "src")
        if problems:
            raise ReleaseError(f"{wheel.name}: " + "; ".join(problems))
        run(tools, "-m", "twine", "check", "--strict", *map(str, built))
        clean = make_environment(folder / "clean", str(wheel))
        scratch = folder / "scratch"
        scratch.mkdir()
        failures = [*try_package(clean, scratch), *try_extras(clean, scratch)]
        if failures:
            raise ReleaseError("the installed wheel fails:\n  " + "\n  ".join(failures))
        out.mkdir(parents=True, exist_ok=True)
        for path in built:
            shutil.copy2(path, out / path.name)
            print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {out / path.name} ({path.stat().st_size:,} bytes)")
    if "urls" not in read_project(ROOT):
        print("note: pyproject.toml has no [project.urls]; add them when the project has a public address")
    print("ready; RELEASING.md lists the next steps")


def read_project(root: Path) -> dict[str, object]:
    """Return the table [project] of pyproject.toml."""
    with (root / "pyproject.toml").open("rb") as file:
        project: dict[str, object] = tomllib.load(file)["project"]
    return project


def read_version(root: Path) -> str:
    """Return the version; raise unless pyproject.toml, the package and CITATION.cff agree."""
    version = str(read_project(root)["version"])
    places = {
        "src/xmtc/__init__.py": rf'^__version__ = "{re.escape(version)}"$',
        "CITATION.cff": rf'^version: "?{re.escape(version)}"?$',
    }
    for place, pattern in places.items():
        if not re.search(pattern, (root / place).read_text(encoding="utf-8"), re.MULTILINE):
            raise ReleaseError(f"{place} does not have version {version} of pyproject.toml; change one of them")
    return version


def check_tree(root: Path, version: str) -> None:
    """Raise if files are changed, or if the version is tagged already at another commit."""
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        raise ReleaseError(f"the work tree is not clean: {changed[0].strip()} and others; commit or remove these files")
    tag = f"v{version}"
    if _git(root, "tag", "--list", tag).strip() and not _git(root, "tag", "--points-at", "HEAD", tag).strip():
        raise ReleaseError(f"tag {tag} exists at another commit; choose a new version")


def check_changelog(text: str, version: str) -> None:
    """Raise unless the changelog starts with an empty Unreleased section and a dated one of this version."""
    headings = list(_HEADING.finditer(text))
    names = [heading["version"] for heading in headings]
    if names[:2] != ["Unreleased", version]:
        raise ReleaseError(
            f"CHANGELOG.md must start with [Unreleased] and [{version}]; it starts with {', '.join(names[:2])}"
        )
    if text[headings[0].end() : headings[1].start()].strip():
        raise ReleaseError(f"CHANGELOG.md has entries under [Unreleased]; move them to [{version}]")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", headings[1]["date"] or ""):
        raise ReleaseError(f"CHANGELOG.md: the section [{version}] needs a date, as in: ## [{version}] - 2026-01-31")


def check_wheel(wheel: Path, source: Path) -> list[str]:
    """Return what is wrong with the contents of a wheel: missing or foreign files, missing metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = HeaderParser().parsestr(
            archive.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
        )
    package = {name for name in names if ".dist-info/" not in name}
    expected = expected_files(source)
    problems = [f"lacks {name}" for name in sorted(expected - package)]
    problems += [f"contains {name}, which is not part of the package" for name in sorted(package - expected)]
    if not any(name.endswith("licenses/LICENSE") for name in names):
        problems.append("lacks the licence")
    for field in (
        "Requires-Python",
        "License-Expression",
        "Summary",
        "Keywords",
        "Classifier",
        "Description-Content-Type",
    ):
        if not metadata.get(field):
            problems.append(f"its metadata lacks {field}")
    return problems


def expected_files(source: Path) -> set[str]:
    """Return the files of the package: sources, recipes, pages and type marker, but no caches."""
    files = (path for path in (source / "xmtc").rglob("*") if path.is_file())
    return {
        path.relative_to(source).as_posix()
        for path in files
        if not any(part.endswith(_CACHES) for part in path.relative_to(source).parts)
    }


def print_contents(wheel: Path) -> None:
    """Print how many files of each kind a wheel has."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    kinds = {
        "Python files": [name for name in names if name.endswith(".py")],
        "recipes": [name for name in names if name.startswith("xmtc/recipes/")],
        "files of the web page": [name for name in names if name.startswith("xmtc/app/web/") and name[-3:] != ".py"],
        "tests": [name for name in names if "tests" in Path(name).parts],
    }
    counted = ", ".join(f"{len(found)} {kind}" for kind, found in kinds.items())
    print(f"{wheel.name}: {len(names)} files; {counted}")


def make_environment(folder: Path, *requirements: str) -> Path:
    """Create a virtual environment with these packages; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    return python


def build(tools: Path, out: Path) -> list[Path]:
    """Build the sdist, and the wheel from it, in an isolated environment; return both files."""
    run(tools, "-m", "build", "--outdir", str(out), str(ROOT))
    built = sorted(out.iterdir())
    if sorted(path.suffix for path in built) != [".gz", ".whl"]:
        raise ReleaseError(f"expected an sdist and a wheel; got {', '.join(path.name for path in built)}")
    return built


def run(python: Path, *arguments: str) -> None:
    """Run Python; raise with its output if it fails."""
    done = subprocess.run([str(python), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shown = "\n".join([*_last(done.stdout), *_last(done.stderr)])
        raise ReleaseError(f"{python.name} {' '.join(arguments)} failed:\n{shown}")


def _last(text: str, lines: int = 20) -> Iterable[str]:
    return text.splitlines()[-lines:]


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    raise SystemExit(main())
