"""The hub is a small server here, or nobody; what is downloaded lies in a cache folder of the test."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from xmtc.core.errors import DataError
from xmtc.data import hub
from xmtc.data.hub import _find_splits, is_hub_name, open_repository

pytest.importorskip("huggingface_hub")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAMES = {"info": {"features": {"labels": {"feature": {"names": ["sugar", "fish"], "_type": "ClassLabel"}}}}}


def parquet(texts: list[str], labels: list[list[int]]) -> bytes:
    table = pa.table({"text": texts, "labels": labels, "other": texts})
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(NAMES)}), sink)
    return sink.getvalue().to_pybytes()


REPOSITORIES = {
    "lib/numbers": {
        "data/train-00000-of-00002.parquet": parquet(["one"], [[0]]),
        "data/train-00001-of-00002.parquet": parquet(["two"], [[1, 0]]),
        "data/test-00000-of-00001.parquet": parquet(["three"], [[1]]),
        "train.csv": b"never read",
        "numbers.py": b"raise SystemExit('code of the hub was run')",
        "README.md": b"---\n---\n",
    },
    "lib/lines": {
        "train.jsonl.gz": gzip.compress(b'{"text": "t", "labels": ["a"]}\n'),
        "validation.jsonl": b'{"text": "d", "labels": ["a"]}\n{"txt": "d"}\n',
        "labels.jsonl": b'{"label": "a", "name": "Alpha", "parents": ["b"]}\n{"label": "b"}\n',
    },
    "lib/parts": {
        "small/train.csv": b"text,labels\nt,a|b\n",
        "large/train.csv": b"text,labels\nt,a|b\nu,c\n",
    },
    "lib/code": {"code.py": b"raise SystemExit", "README.md": b""},
}


class Hub(BaseHTTPRequestHandler):
    """Answers what huggingface_hub asks for lists of files and for files."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        for name, files in REPOSITORIES.items():
            if path == f"/api/datasets/{name}":
                return self.answer({"id": name, "sha": COMMIT, "siblings": [{"rfilename": file} for file in files]})
            if path.startswith(f"/api/datasets/{name}/tree/"):
                return self.answer(
                    [{"type": "file", "path": file, "size": len(raw), "oid": "0" * 40} for file, raw in files.items()]
                )
            for file, raw in files.items():
                if path.startswith(f"/datasets/{name}/resolve/") and path.endswith(f"/{file}"):
                    return self.send(200, raw)
        return self.send(404, b"{}")

    def answer(self, value: object) -> None:
        self.send(200, json.dumps(value).encode())

    def send(self, code: int, raw: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("ETag", f'"{hash(raw)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if code == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(raw)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict]:
    """What commands gave with the server, and what the same gave after it had gone."""
    home = tmp_path_factory.mktemp("hub")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        **os.environ,
        "HF_HOME": str(home),
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "XMTC_CACHE": str(home / "xmtc"),
        "NO_PROXY": "*",
    }
    for name in ("HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_TOKEN"):
        environment.pop(name, None)
    first = run(environment)
    server.shutdown()
    server.server_close()
    return first, run(environment)


SCRIPT = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from xmtc.app.cli import progress
from xmtc.app.cli import main
progress._QUICK = progress._EVERY = float("inf")  # a slow machine is no matter of these tests
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
COMMANDS = {
    "numbers": ["inspect", "hf:lib/numbers", "--json"],
    "lines": ["inspect", "hf:lib/lines", "--json"],
    "convert": ["data", "convert", "hf:lib/numbers", "--to", "csv", "--out"],
    "parts": ["inspect", "hf:lib/parts"],
    "part": ["inspect", "hf:lib/parts/large", "--json"],
    "no part": ["inspect", "hf:lib/parts/lrge"],
    "code": ["inspect", "hf:lib/code"],
    "none": ["inspect", "hf:lib/none"],
}


def run(environment: dict[str, str]) -> dict:
    out = Path(environment["HF_HOME"]) / f"out-{len(list(Path(environment['HF_HOME']).glob('out-*')))}"
    commands = [[*arguments, str(out)] if name == "convert" else arguments for name, arguments in COMMANDS.items()]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(commands)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = dict(zip(COMMANDS, map(json.loads, done.stdout.splitlines()), strict=True))
    return {**found, "out": out}


@pytest.mark.parametrize("online", [True, False])
def test_data_sets_are_read_and_again_without_a_network(answers, online: bool) -> None:
    found = answers[0 if online else 1]
    code, out, err = found["numbers"]
    assert (code, err) == (0, "")
    described = json.loads(out)
    assert described["layout"] == "hf"
    assert {name: split["documents"] for name, split in described["splits"].items()} == {"train": 2, "test": 1}
    code, out, err = found["convert"]
    assert (code, err) == (0, "")
    rows = (found["out"] / "train.csv").read_text().splitlines()
    assert rows == ['"id","text","labels"', '"0","one","[""0""]"', '"1","two","[""0"", ""1""]"']
    names = [json.loads(line) for line in (found["out"] / "labels.jsonl").read_text().splitlines()]
    assert names == [{"label": "0", "name": "sugar"}, {"label": "1", "name": "fish"}]
    code, out, err = found["part"]
    assert (code, json.loads(out)["splits"]["train"]["documents"]) == (0, 2)


@pytest.mark.parametrize("online", [True, False])
def test_mistakes_are_told_in_one_line(answers, online: bool) -> None:
    found = answers[0 if online else 1]
    for name in ("lines", "no part", "code", "none", *(["parts"] if online else [])):
        code, out, err = found[name]
        assert (code, out, err.count("\n")) == (2, "", 1), err
    assert "line 2: no key 'text' (there: 'txt')" in found["lines"][2]
    assert "hf:lib/none: the hub did not provide it (" in found["none"][2]
    assert "go online, fetch it elsewhere with `hf download --repo-type dataset lib/none`" in found["none"][2]
    if online:
        assert "has several parts; name one, as hf:lib/parts/large. It has large, small." in found["parts"][2]
        assert "no file of a split (it contains README.md, code.py)" in found["code"][2]
    assert "no part 'lrge' there. Did you mean 'large'?" in found["no part"][2]


def test_names_tell_the_split() -> None:
    files = [
        "a/train/part-1.jsonl",
        "a/train/part-0.jsonl",
        "a/val.jsonl",
        "a/Test_set.jsonl",
        "a/contest.jsonl",
        "x.md",
    ]
    found = _find_splits(files, "a", "hf:x/y")
    assert {split: [path.as_posix() for path in paths] for split, paths in found.items()} == {
        "test": ["a/Test_set.jsonl"],
        "train": ["a/train/part-0.jsonl", "a/train/part-1.jsonl"],
        "dev": ["a/val.jsonl"],
    }


def test_the_only_part_needs_no_name() -> None:
    assert list(_find_splits(["plain/train.csv", "README.md"], "", "hf:x/y")) == ["train"]


def test_names_of_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_hub_name("hf:owner/name")
    assert not is_hub_name("data/hf:x")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hf:mine").mkdir()
    assert not is_hub_name("hf:mine")
    for wrong in ("hf:", "hf:name", "hf:/name", "hf:a b/c"):
        with pytest.raises(DataError, match="does not name a data set; write hf:owner/name"):
            open_repository(wrong)


def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"install it with: pip install 'xmtc\[hub\]'"):
        open_repository("hf:owner/name")
    assert "huggingface_hub" not in vars(hub)
