"""A small hub: the routes of the Hugging Face hub that pushing and pulling a model use, with its files in memory.

Files travel as the hub's client sends them: small ones inside the commit, those that `LARGE` names by LFS with a batch
request and an upload whose sha256 is checked. Not here: Xet, multipart uploads, pull requests, branches.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_standin"
LARGE = (".npy", ".safetensors")
Files = dict[str, bytes]


class Hub(ThreadingHTTPServer):
    """The repositories, their commits, and what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_address[1]}"
        self.commits: dict[str, dict[str, Files]] = {}  # repository → commit → files, the newest last
        self.objects: dict[str, bytes] = {}  # sha256 → content of LFS files
        self.fetched: list[str] = []  # files that were downloaded
        self.private: set[str] = set()

    def head(self, repository: str) -> str:
        return list(self.commits[repository])[-1]

    def commit(self, repository: str, files: Files) -> str:
        """Add a commit with these files."""
        content = "".join(f"{name}{hashlib.sha256(raw).hexdigest()}" for name, raw in sorted(files.items()))
        commit = hashlib.sha1(f"{len(self.commits[repository])}{content}".encode()).hexdigest()
        self.commits[repository][commit] = files
        return commit


@contextmanager
def running() -> Iterator[Hub]:
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._read()

    def do_GET(self) -> None:
        self._read()

    def _read(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", path):
            repository, kind, revision = found.groups()
            if (files := self._files(repository, revision or "main")) is None:
                return
            sizes = [{"type": "file", "path": name, "size": len(raw), "oid": "0" * 40} for name, raw in files.items()]
            facts = {
                "id": repository,
                "sha": self._commit(repository, revision or "main"),
                "siblings": [{"rfilename": name} for name in files],
            }
            self._answer(sizes if kind == "tree" else facts)
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            repository, revision, file = found.groups()
            if (files := self._files(repository, revision)) is None:
                return
            if file not in files:
                self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
                return
            if self.command == "GET":
                self.server.fetched.append(file)
            tag = hashlib.sha256(files[file]).hexdigest()
            self._send(200, files[file], {"ETag": f'"{tag}"', "X-Repo-Commit": self._commit(repository, revision)})
        else:
            self._send(404, b"{}")

    def do_PUT(self) -> None:
        content = self._body()
        oid = self.path.rpartition("/")[2]
        if hashlib.sha256(content).hexdigest() != oid:
            self._send(400, b"not what was announced")
        else:
            self.server.objects[oid] = content
            self._send(200, b"")

    def do_POST(self) -> None:
        body = self._body()
        path = unquote(urlsplit(self.path).path)
        if path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif self.headers.get("authorization") != f"Bearer {TOKEN}":
            self._send(401, b'{"error": "Invalid username or password."}')
        elif path == "/api/repos/create":
            order = json.loads(body)
            repository = f"{order.get('organization') or 'me'}/{order['name']}"
            if repository in self.server.commits:
                self._send(409, json.dumps({"url": f"{self.server.address}/{repository}"}).encode())
                return
            self.server.commits[repository] = {}
            self.server.commit(repository, {".gitattributes": b"*.npy filter=lfs\n"})
            if order.get("private") or order.get("visibility") == "private":
                self.server.private.add(repository)
            self._answer({"url": f"{self.server.address}/{repository}"})
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/main", path):
            repository, kind = found.groups()
            self._answer(self._modes(json.loads(body)) if kind == "preupload" else self._add(repository, body))
        elif re.fullmatch(r"/[^/]+/[^/]+\.git/info/lfs/objects/batch", path):
            actions = [
                {**one, "actions": {"upload": {"href": f"{self.server.address}/lfs/{one['oid']}"}}}
                for one in json.loads(body)["objects"]
                if one["oid"] not in self.server.objects
            ]
            self._answer({"transfer": "basic", "objects": actions})
        else:
            self._send(404, b"{}")

    def _modes(self, order: dict[str, Any]) -> dict[str, Any]:
        return {
            "files": [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                    "shouldIgnore": False,
                }
                for file in order["files"]
            ]
        }

    def _add(self, repository: str, body: bytes) -> dict[str, Any]:
        files = dict(self.server.commits[repository][self.server.head(repository)])
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.objects[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        commit = self.server.commit(repository, files)
        return {"commitUrl": f"{self.server.address}/{repository}/commit/{commit}", "commitOid": commit}

    def _files(self, repository: str, revision: str) -> Files | None:
        """A commit's files; None if the client was told that there are none."""
        if repository not in self.server.commits:
            self._send(401, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
            return None
        commit = self._commit(repository, revision)
        if commit not in self.server.commits[repository]:
            self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            return None
        return self.server.commits[repository][commit]

    def _commit(self, repository: str, revision: str) -> str:
        return self.server.head(repository) if revision == "main" else revision

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _answer(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
