"""Mistakes that a user can mend, each told in one line: what is wrong, where, and what to do.

Knows nothing of terminals or HTTP; `app/` turns these into exit codes and status codes. Anything that is not an
`XmtcError` and reaches the user is a bug of ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class XmtcError(Exception):
    """A user's mistake. The message is one line and says what to do."""


class DataError(XmtcError):
    """A corpus, label file or feature matrix that cannot be used as it is."""


class ConfigError(XmtcError):
    """A setting that does not exist or has a value outside its range."""


class ModelError(XmtcError):
    """A model folder that is missing, cut, altered or of a newer format; or a model given the wrong kind of input."""


class Notice(UserWarning):
    """Says what the library decided where the user did not: one line, no mistake."""


class DataWarning(UserWarning):
    """Warns of something in the data that looks wrong but was kept."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory is used up: Python's own, or torch's of a CPU or GPU."""
    told = str(error)
    ours = isinstance(error, RuntimeError) and ("out of memory" in told or "can't allocate memory" in told)
    return isinstance(error, MemoryError) or ours


def nearest(name: str, options: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the option closest to `name`, or an empty string when none is close."""
    options = list(options)
    folded = {option.casefold(): option for option in options}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean {folded[close[0]]!r}?" if close else ""
