"""The command line as a page, from the commands themselves: what they do, their arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from xmtc.app.cli.commands import app
from xmtc.app.cli.listings import fill

_HEAD = """# Command line

Results go to stdout, progress and errors to stderr. `--json` prints JSON. User errors print one line and exit with
code 2; 130 means interrupted, 1 a bug in xmtc. `xmtc COMMAND --help` shows the same as this page, and
`xmtc --install-completion` completes commands, methods and recipes in bash, zsh and fish.

This page is generated from the code.
"""


def page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for path, command in _commands(typer.main.get_command(app), "xmtc"):
        parts.append(f"## {path}\n")
        parts.append(f"{_markdown(fill(command.help) or '')}\n")
        example = (command.epilog or "").partition("\n")[0].removeprefix("Example: ")
        if example:
            parts.append(f"```text\n{example}\n```\n")
        groups: dict[str, list[Any]] = {}
        for parameter in command.params:
            if not getattr(parameter, "hidden", False) and parameter.name != "help":
                groups.setdefault(_panel(parameter), []).append(parameter)
        for panel, parameters in groups.items():
            parts.append(f"| {panel} | | Default |\n|---|---|---|")
            parts += [_row(parameter) for parameter in parameters]
            parts.append("")
    return "\n".join(parts)


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _panel(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Argument"
    return getattr(parameter, "rich_help_panel", None) or "Option"


def _row(parameter: Any) -> str:
    named = parameter.metavar or ""
    if parameter.param_type_name == "argument":
        name = f"`{named or parameter.name.upper()}`"
    else:
        name = ", ".join(f"`{option}`" for option in [*parameter.opts, *parameter.secondary_opts])
        flag = getattr(parameter, "is_flag", False)
        name += f" `{named}`" if named and not flag else ""
    default = parameter.default
    shown = "required" if parameter.required else ""
    absent = default is None or default is False or callable(default) or default in ((), [])
    if not parameter.required and not absent:
        shown = f"`{default}`"
    help_text = " ".join((fill(getattr(parameter, "help", "")) or "").split())
    return "| " + " | ".join(_markdown(cell).replace("|", "\\|") for cell in (name, help_text, shown)) + " |"


def _markdown(text: str) -> str:
    """Help as Markdown: placeholders that the command line fills in are left out, angle brackets are shown."""
    return text.replace("<", "&lt;").replace("\f", "").strip()
