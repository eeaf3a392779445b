"""The public names of Python as a page, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import xmtc

# module → its public names and the title of their section
_SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Train, load and use models",
        "xmtc",
        ("read_corpus", "train", "load", "suggest", "calibrate", "update", "export"),
    ),
    ("Measure and compare", "xmtc", ("evaluate", "compare", "save_ranking", "load_ranking", "Report", "Propensity")),
    ("Join models", "xmtc", ("ensemble",)),
    ("Types", "xmtc", ("Corpus", "Model", "Ranking", "Explanation", "LabelSet", "Concept", "Partition", "LabelTree")),
    ("Errors", "xmtc", ("XmtcError",)),
    ("Tuning", "xmtc.tuning", ("tune",)),
    ("scikit-learn", "xmtc.sklearn", ("XMTCClassifier",)),
    (
        "Thresholds and rankings of a corpus",
        "xmtc.api",
        ("find_threshold", "rank_corpus", "list_methods", "list_recipes"),
    ),
    ("A method of your own", "xmtc.core.method", ("Method",)),
)
_HEAD = """# Python

What `import xmtc` offers, and three modules beside it. This page is generated from the code.
"""


def page() -> str:
    """Return the page; every public name of xmtc is on it."""
    listed = {name for _, module, names in _SECTIONS if module == "xmtc" for name in names}
    missing = set(xmtc.__all__) - listed
    if missing:
        raise SystemExit(f"docs/site/python_api.py has no section for {', '.join(sorted(missing))}")
    parts = [_HEAD]
    for title, module, names in _SECTIONS:
        parts.append(f"## {title}\n")
        parts += [_describe(f"{module}.{name}", getattr(import_module(module), name)) for name in names]
    return "\n".join(parts)


def _describe(name: str, thing: Any) -> str:
    if not inspect.isclass(thing):
        return f"### {name}\n\n{_signature(name, thing)}\n\n{_prose(thing)}\n"
    parts = [f"### {name}\n\n{_signature(name, thing) if _own_constructor(thing) else ''}\n\n{_prose(thing)}\n"]
    for member, value in inspect.getmembers_static(thing):
        if member.startswith(("_", "display_")) or member == "model_config":
            continue
        owner = next((base for base in thing.__mro__ if member in base.__dict__), None)
        if owner is None or not owner.__module__.startswith("xmtc"):
            continue
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if isinstance(function, property):
            parts.append(f"#### {name}.{member} {{ #{_anchor(name, member)} }}\n\n{_prose(function)}\n")
        elif inspect.isfunction(function):
            shown = _signature(f"{name}.{member}", function)
            parts.append(f"#### {name}.{member} {{ #{_anchor(name, member)} }}\n\n{shown}\n\n{_prose(function)}\n")
    return "\n".join(parts)


def _anchor(name: str, member: str) -> str:
    return f"{name}.{member}".lower()


def _own_constructor(thing: type) -> bool:
    return not inspect.isabstract(thing) and not issubclass(thing, Exception)


def _signature(name: str, function: Any) -> str:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return ""
    parameters = [
        str(parameter).replace("'", "") if not isinstance(parameter.default, str) else str(parameter)
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls", "progress")
    ]
    parameters = [re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", text) for text in parameters]
    starred = _with_star(signature, parameters)
    returned = signature.return_annotation
    arrow = "" if returned is inspect.Signature.empty or inspect.isclass(function) else f" -> {_type_name(returned)}"
    one_line = f"{name}({', '.join(starred)}){arrow}"
    if len(one_line) > 90:
        one_line = f"{name}(\n    " + ",\n    ".join(starred) + f",\n){arrow}"
    return f"```text\n{one_line}\n```"


def _with_star(signature: inspect.Signature, shown: list[str]) -> list[str]:
    """Put the `*` before the first argument that must be named."""
    kinds = [
        parameter.kind
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls", "progress")
    ]
    if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.KEYWORD_ONLY not in kinds:
        return shown
    at = kinds.index(inspect.Parameter.KEYWORD_ONLY)
    return [*shown[:at], "*", *shown[at:]]


def _type_name(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", text)


def _prose(thing: Any) -> str:
    """The docstring as Markdown: examples become code, and `name:` at the start of a line a list of arguments."""
    text = inspect.getdoc(thing) or ""
    if text.startswith(f"{getattr(thing, '__name__', '')}("):  # a dataclass's own, which repeats the fields
        return ""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        example = line.startswith((">>>", "..."))
        if example and not inside:
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    if inside:
        lines.append("```")
    return "\n".join(lines)
