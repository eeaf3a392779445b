"""The command line's entry: runs one command and turns whatever happens into an exit code.

0 done; 2 the user's fault, told in one line; 130 interrupted; 1 our bug. Knows no command: `commands.py` lists them. It
is imported late, so that an interrupt while it loads is answered like any other.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from xmtc.core.errors import Notice, XmtcError, is_out_of_memory

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `xmtc` with these arguments, or as the process's own command, and return the exit code."""
    if arguments is not None:
        return _run(list(arguments))
    signal.signal(signal.SIGTERM, _interrupt)
    code = _run(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):  # all is done: the exit code shall tell how, not a late signal
        signal.signal(number, signal.SIG_IGN)
    if code == INTERRUPTED:
        # an interrupt that passed through exec'd code, such as a dataclass's, would make Python kill itself by SIGINT
        os._exit(code)
    return code


def _run(arguments: list[str]) -> int:
    _use_utf8()
    try:
        with _warnings_in_one_line():
            from xmtc.app.cli.commands import run

            run(arguments)
            sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        _tell("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        _drop_stdout()
        return 0
    except XmtcError as error:
        _tell(f"error: {error}")
        return 2
    except OSError as error:
        _drop_stdout()  # a full disk behind it would speak up once more when the process ends
        where = f" {error.filename}" if error.filename else ""
        _tell(f"error: cannot read or write{where}: {error.strerror or error}")
        return 2
    except Exception as error:
        if is_out_of_memory(error):
            told = " ".join(str(error).split())[:200] or "the data or the model is too large"
            _tell(f"error: not enough memory ({told}); use less data, a smaller model or batch, or a larger machine")
            return 2
        import traceback

        traceback.print_exc()
        _tell("this is a bug in xmtc: please report it with the lines above")
        return 1


def _tell(line: str) -> None:
    """Write one line to stderr, whatever the message holds; that nobody reads it is no reason to stop."""
    with suppress(OSError):
        print(" ".join(line.split()), file=sys.stderr, flush=True)


def _use_utf8() -> None:
    """Names and texts are Unicode, whatever the locale; a stream that the shell closed swallows what it gets."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


def _drop_stdout() -> None:
    """Let Python's last flush go nowhere: it would complain about the broken stream."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is no real file, as in tests
        return


def _interrupt(number: int, frame: object) -> None:
    """Answer SIGTERM like Ctrl-C, so that half-written files are removed."""
    raise KeyboardInterrupt


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show the library's own warnings as `warning: …`; others stay as Python shows them."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_ours(message: Any, category: type[Warning], *place: Any, **rest: Any) -> None:
            if category.__module__.startswith("xmtc."):
                _tell(f"{'note' if issubclass(category, Notice) else 'warning'}: {message}")
            else:
                show(message, category, *place, **rest)

        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show_ours
        yield
