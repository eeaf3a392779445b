"""Errors that a user can fix, each in one line: what is wrong, where, and what to do.

Independent of terminals and HTTP; `app/` turns these into exit codes and status codes. Any other exception that
reaches the user is a bug in xmtc.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class XmtcError(Exception):
    """A user error. The message is one line and says what to do."""


class DataError(XmtcError):
    """A corpus, label file or feature matrix that cannot be used."""


class ConfigError(XmtcError):
    """A setting that does not exist or has a value outside its range."""


class ModelError(XmtcError):
    """A model folder that is missing, truncated, modified or of a newer format; or the wrong input to a model."""


class Notice(UserWarning):
    """Reports, in one line, what the library decided because the user did not; not an error."""


class DataWarning(UserWarning):
    """Warns of something in the data that looks wrong but was kept."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means out of memory: Python's own, or torch's on a CPU or GPU."""
    told = str(error)
    ours = isinstance(error, RuntimeError) and ("out of memory" in told or "can't allocate memory" in told)
    return isinstance(error, MemoryError) or ours


def nearest(name: str, options: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the option closest to `name`, or an empty string when none is close."""
    options = list(options)
    folded = {option.casefold(): option for option in options}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean {folded[close[0]]!r}?" if close else ""
