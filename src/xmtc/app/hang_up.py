"""Hold back SIGHUP while a server starts or stops; its default action would end the process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

_HANG_UP = getattr(signal, "SIGHUP", None)  # not on Windows


class HangUp:
    """Catches SIGHUP inside a `with` block, and holds it back until `take` sets an action."""

    def __init__(self) -> None:
        self._act: Callable[[], object] | None = None
        self._pending = False
        self._before: Any = None

    def __enter__(self) -> HangUp:
        if _HANG_UP is not None and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(_HANG_UP, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if _HANG_UP is not None and self._before is not None:
            signal.signal(_HANG_UP, self._before)

    def take(self, act: Callable[[], object] | None) -> None:
        """Call `act` at every SIGHUP from now on, and at once if one was held back; None holds them back again."""
        self._act = act
        if act is not None and self._pending:
            self._pending = False
            act()

    def _handle(self, number: int, frame: object) -> None:
        if self._act is None:
            self._pending = True
        else:
            self._act()
