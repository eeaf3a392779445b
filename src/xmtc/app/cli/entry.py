"""The entry point of the command line: run one command and return its exit code.

0: success; 2: a user error, reported in one line; 130: interrupted; 1: a bug in xmtc. `commands.py` lists the commands.
It is imported late, so that an interrupt during its import is handled like any other.
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
    for number in (signal.SIGINT, signal.SIGTERM):  # a late signal must not change the exit code
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
        _print_line("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has exited
        _drop_stdout()
        return 0
    except XmtcError as error:
        _print_line(f"error: {error}")
        return 2
    except OSError as error:
        _drop_stdout()  # a full disk would raise again at exit
        where = f" {error.filename}" if error.filename else ""
        _print_line(f"error: cannot read or write{where}: {error.strerror or error}")
        return 2
    except Exception as error:
        if is_out_of_memory(error):
            reason = " ".join(str(error).split())[:200] or "the data or the model is too large"
            _print_line(
                f"error: not enough memory ({reason}); use less data, a smaller model or batch, or a larger machine"
            )
            return 2
        import traceback

        traceback.print_exc()
        _print_line("this is a bug in xmtc; please report it with the lines above")
        return 1


def _print_line(line: str) -> None:
    """Write a message to stderr as one line; ignore a closed stderr."""
    with suppress(OSError):
        print(" ".join(line.split()), file=sys.stderr, flush=True)


def _use_utf8() -> None:
    """Write UTF-8 in any locale; discard output to a stream that the shell has closed."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


def _drop_stdout() -> None:
    """Redirect stdout to the null device, so that Python's last flush does not fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is not a real file, as in tests
        return


def _interrupt(number: int, frame: object) -> None:
    """Handle SIGTERM like Ctrl-C, so that half-written files are removed."""
    raise KeyboardInterrupt


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print the library's own warnings as `warning: …`; leave others to Python."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_ours(message: Any, category: type[Warning], *place: Any, **rest: Any) -> None:
            if category.__module__.startswith("xmtc."):
                _print_line(f"{'note' if issubclass(category, Notice) else 'warning'}: {message}")
            else:
                show(message, category, *place, **rest)

        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show_ours
        yield
