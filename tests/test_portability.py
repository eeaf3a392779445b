"""Nothing in src assumes Linux: calls that other systems lack stand behind a check, and text files have one form.

The sources are read, not run: see CONTRIBUTING.md, "Windows and macOS", for what has been run where.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "xmtc"
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    "signal": r"SIG(?!INT$|TERM$|ABRT$|FPE$|ILL$|SEGV$|_DFL$|_IGN$)\w+|alarm|setitimer|pause|pthread_\w+"
    r"|sigwait\w*|sigpending",
    "os": r"fork\w*|kill\w*|get(e?[ug]id|pgid|pgrp|sid|loadavg)|set(e?[ug]id|sid|pgid)|wait(pid|id|3|4)?|sched_\w+"
    r"|sysconf|statvfs|uname|nice|l?chown|mkfifo|mknod|p(read|write)v?|posix_\w+|sendfile|symlink|link|memfd_create"
    r"|openpty|sync|O_(?!RDONLY$|WRONLY$|RDWR$|CREAT$|EXCL$|TRUNC$|APPEND$)\w+",
    "mmap": r"(MAP|PROT|MADV)_\w+",
    "socket": r"SO_REUSE\w+|AF_UNIX|send_fds|recv_fds|fromfd",
}
METHODS = {"madvise", "symlink_to", "hardlink_to", "add_signal_handler", "add_reader", "add_writer", "malloc_trim"}
KEYWORDS = {"pass_fds", "preexec_fn", "start_new_session", "dir_fd"}
PLACES = re.compile(r"/(proc|sys|dev|tmp|etc|var|usr|run)(/|$)")
CHECKS = re.compile(r"\b(hasattr|getattr|sys\.platform|os\.name|platform\.system|find_spec)\b")
ABSENCE = {"ImportError", "ModuleNotFoundError", "AttributeError", "OSError", "FileNotFoundError"}

# file → (what is used there, why that is right)
ALLOWED = {
    "app/rest/workers.py": (
        r"signal\.\w+|add_reader|pass_fds",
        "several workers; `xmtc serve` uses one on Windows: tests/app/cli/test_serve.py",
    ),
    "core/spinning.py": (
        r"os\.(sched_getaffinity|sysconf)|CDLL\(None\)|/proc/stat",
        "all that uses them runs only after `prepare`, which does nothing on other systems",
    ),
    "core/threads.py": (r"/(proc|sys)/\S+", "files of cgroups; where there are none, there is no limit"),
    "neural/plan.py": (r"/sys/\S+", "files of cgroups; they are read only if they exist"),
}


class Use(NamedTuple):
    """Something that not every system has."""

    what: str
    line: int


def uses(source: str) -> list[Use]:
    """Return what a module uses outside a check for it."""
    tree = ast.parse(source)
    found: list[Use] = []
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))]:
        own = list(_own_nodes(scope))
        if not any(map(_is_check, own)):
            found += [Use(what, getattr(node, "lineno", 0)) for node in own for what in _named(node)]
    return found


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function or module but those of the functions inside it, and no docstring."""
    body = getattr(scope, "body", [])
    docstring = body[0] if ast.get_docstring(scope) is not None else None  # type: ignore[arg-type]
    for child in ast.iter_child_nodes(scope):
        if child is not docstring:
            yield child
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _own_nodes(child) if isinstance(child, ast.ClassDef) else _descendants(child)


def _descendants(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _descendants(child)


def _is_check(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        return bool(ABSENCE & {each.id for each in ast.walk(node.type or node) if isinstance(each, ast.Name)})
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        return bool(ABSENCE & {ast.unparse(argument) for argument in node.args})
    return isinstance(node, ast.Call | ast.Attribute) and bool(CHECKS.match(ast.unparse(node)))


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        names = NAMES.get(node.module, r"(?!)")
        yield from ([node.module] if node.module in MODULES else ())
        yield from (f"{node.module}.{alias.name}" for alias in node.names if re.fullmatch(names, alias.name))
    elif isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if re.fullmatch(NAMES.get(owner, r"(?!)"), node.attr):
            yield f"{owner}.{node.attr}"
        elif node.attr in METHODS:
            yield node.attr
    elif isinstance(node, ast.keyword) and node.arg in KEYWORDS:
        yield node.arg
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("CDLL") and ast.unparse(node.args[0]) == "None":
        yield "CDLL(None)"
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("get_context", "set_start_method")):
        yield from (["fork"] if any("fork" in ast.unparse(argument) for argument in node.args) else [])
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACES.match(node.value):
        yield node.value


def text_files(source: str) -> list[Use]:
    """Return where text is read or written in a form that differs between systems: encoding and line ends."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        keywords = {keyword.arg for keyword in node.keywords}
        modes = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        mode = next((value for value in modes if re.fullmatch(r"[rwax]t?\+?", value)), "")
        writes = name == "write_text" or (name == "open" and mode[:1] in {"w", "a", "x"})
        reads = name == "read_text" or (name == "open" and mode[:1] == "r")
        if (reads or writes) and "encoding" not in keywords:
            found.append(Use(f"{name} without encoding", node.lineno))
        if writes and "newline" not in keywords and "os.devnull" not in ast.unparse(node):
            found.append(Use(f"{name} without newline", node.lineno))
    return found


FILES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}


@pytest.mark.parametrize("name", FILES)
def test_no_file_assumes_linux(name: str) -> None:
    allowed = ALLOWED.get(name, (r"(?!)", ""))[0]
    found = uses(FILES[name].read_text(encoding="utf-8"))
    assert [use for use in found if not re.fullmatch(allowed, use.what)] == []


@pytest.mark.parametrize("name", FILES)
def test_text_files_are_the_same_everywhere(name: str) -> None:
    assert text_files(FILES[name].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", ALLOWED)
def test_nothing_is_allowed_that_is_not_there(name: str) -> None:
    assert any(re.fullmatch(ALLOWED[name][0], use.what) for use in uses(FILES[name].read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import fcntl", ["fcntl"]),
        ("try:\n    import fcntl\nexcept ImportError:\n    fcntl = None", []),
        ("from signal import SIGHUP", ["signal.SIGHUP"]),
        ("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)", []),
        ("def f():\n    signal.signal(signal.SIGHUP, f)", ["signal.SIGHUP"]),
        ("def f():\n    if hasattr(signal, 'SIGHUP'):\n        signal.signal(signal.SIGHUP, f)", []),
        ("def f():\n    return len(os.sched_getaffinity(0))", ["os.sched_getaffinity"]),
        ("def g():\n    return sys.platform\ndef f():\n    os.fork()", ["os.fork"]),  # a check of another function
        ("class A:\n    def f(self):\n        os.kill(1, 0)", ["os.kill"]),
        ("def f(s):\n    s.setsockopt(1, socket.SO_REUSEPORT, 1)", ["socket.SO_REUSEPORT"]),
        ("def f(m):\n    m.madvise(mmap.MADV_DONTNEED)", ["madvise", "mmap.MADV_DONTNEED"]),
        ("def f():\n    return open('/proc/cpuinfo', 'rb')", ["/proc/cpuinfo"]),
        (
            "def f():\n    try:\n        return open('/proc/cpuinfo', 'rb')\n    except OSError:\n        return None",
            [],
        ),
        ("def f():\n    '/tmp is not used here'", []),
        ("x = ctypes.CDLL(None)", ["CDLL(None)"]),
        ("p = get_context('fork')", ["fork"]),
        ("run(c, preexec_fn=f)", ["preexec_fn"]),
        ("Path('a').symlink_to('b')", ["symlink_to"]),
    ],
)
def test_the_reader_finds_what_it_should(source: str, expected: list[str]) -> None:
    assert sorted(use.what for use in uses(source)) == sorted(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("p.read_text()", ["read_text without encoding"]),
        ("p.read_text(encoding='utf-8')", []),
        ("p.write_text(t, encoding='utf-8')", ["write_text without newline"]),
        ("p.write_text(t, encoding='utf-8', newline='\\n')", []),
        ("open(p, 'w')", ["open without encoding", "open without newline"]),
        ("open(p, 'wb')", []),
    ],
)
def test_the_reader_of_text_files(source: str, expected: list[str]) -> None:
    assert [use.what for use in text_files(source)] == expected
