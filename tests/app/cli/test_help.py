"""Help pages: every option has a panel and a plain help text, and every command an example that parses."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest
import typer
from rich.text import Text
from typer.core import TyperOption

from xmtc.app.cli import commands
from xmtc.app.cli.panels import ADVANCED, PANELS

MANNERED = re.compile(
    r"\b(told|go(es)? on with|gone on with|dear|hangs? on|whoever|that is none|in place of|lies? in|anew)\b"
)


def _commands() -> Iterator[tuple[str, Any]]:
    root: Any = typer.main.get_command(commands.app)
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {child}", found) for child, found in inner.items())


COMMANDS = dict(_commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_panel_and_a_help_text(name: str) -> None:
    for option in COMMANDS[name].params:
        if isinstance(option, TyperOption):
            assert option.rich_help_panel in PANELS, option.opts
        assert (option.help or "").endswith("."), option.opts
        assert option.help[0].isupper() or option.help[0] in "-{" or option.help.split()[0].rstrip(",") in CHOICES


CHOICES = {"all", "fast", "isotonic"}  # help texts that begin with a value


@pytest.mark.parametrize("name", COMMANDS)
def test_help_texts_are_plain_english(name: str) -> None:
    command = COMMANDS[name]
    texts = [command.help, command.epilog, *(option.help for option in command.params)]
    assert [found[0] for text in texts if (found := MANNERED.search(text or ""))] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_no_text_is_taken_for_markup(name: str) -> None:
    command = COMMANDS[name]
    for text in (command.help, command.epilog, *(option.help for option in command.params)):
        assert Text.from_markup(text or "").plain == (text or "")


@pytest.mark.parametrize("name", COMMANDS)
def test_panels_are_shown_in_one_order(name: str) -> None:
    page = io.StringIO()
    with redirect_stdout(page), pytest.raises(typer.Exit):
        COMMANDS[name].make_context(name, ["--help"])
    shown = re.findall(r"^╭─ (.+?) ─+╮$", page.getvalue(), re.MULTILINE)
    panels = [title for title in shown if title != "Arguments"]
    assert panels == [panel for panel in PANELS if panel in panels]
    assert panels[-1] == ADVANCED  # where --help is


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_parses(name: str) -> None:
    example = COMMANDS[name].epilog.removeprefix("Example: ").splitlines()[0]
    program, *arguments = shlex.split(example)
    assert program == "xmtc"
    assert arguments[: len(name.split())] == name.split()
    with COMMANDS[name].make_context(name, arguments[len(name.split()) :]) as context:
        assert context.params is not None
