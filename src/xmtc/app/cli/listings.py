"""Insert names of methods, recipes, layouts and others into help texts, taken from where they are defined.

A help text contains {methods} where the names belong. They are filled in only when the help of that command is shown,
so that `xmtc --help` does not import the packages that define them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperOption

from xmtc.app.cli.panels import ADVANCED, order_of


class ListingCommand(TyperCommand):
    """A command whose help page groups its options, and may list names."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return --help in the last panel; by default it would get its own panel."""
        option = super().get_help_option(ctx)
        if isinstance(option, TyperOption):
            option.rich_help_panel = ADVANCED
        return option

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fill in the names, then write the help page."""
        self.help, self.epilog = fill(self.help), fill(self.epilog)
        for parameter in self.params:
            if isinstance(parameter, (TyperArgument, TyperOption)):
                parameter.help = fill(parameter.help)
        self.params.sort(key=order_of)  # stable sort: panels have the same order everywhere
        super().format_help(ctx, formatter)


def fill(text: str | None) -> str | None:
    """Replace {methods}, {recipes}, {layouts}, {rules} and {trackers} in a help text with the available names."""
    return None if text is None else re.sub(r"\{(\w+)\}", lambda found: _LISTINGS[found[1]](), text)


def _methods() -> str:
    from xmtc import api

    return _either(api.list_methods())


def _recipes() -> str:
    """Return the recipes, one paragraph per method."""
    from xmtc import api

    by_method = groupby(api.list_recipes(), key=lambda name: name.partition("/")[0])
    return "\n\n".join(", ".join(recipes) for _, recipes in by_method)


def _layouts() -> str:
    from xmtc.data import LAYOUTS

    return _either(layout.name for layout in LAYOUTS if layout.writable)


def _rules() -> str:
    from xmtc.core.ensemble import RULES

    return _either(RULES)


def _trackers() -> str:
    from xmtc.tracking import TRACKERS

    return _either(TRACKERS)


def complete_methods(incomplete: str) -> list[str]:
    """Return the methods with this prefix, for shell completion."""
    from xmtc import api

    return _beginning(api.list_methods(), incomplete)


def complete_recipes(incomplete: str) -> list[str]:
    """Return the recipes with this prefix, for shell completion."""
    from xmtc import api

    return _beginning(api.list_recipes(), incomplete)


def complete_rules(incomplete: str) -> list[str]:
    """Return the ensemble rules with this prefix, for shell completion."""
    from xmtc.core.ensemble import RULES

    return _beginning(RULES, incomplete)


def complete_trackers(incomplete: str) -> list[str]:
    """Return the trackers with this prefix, for shell completion."""
    from xmtc.tracking import TRACKERS

    return _beginning(TRACKERS, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


_LISTINGS: dict[str, Callable[[], str]] = {
    "methods": _methods,
    "recipes": _recipes,
    "layouts": _layouts,
    "rules": _rules,
    "trackers": _trackers,
}


def _either(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"
