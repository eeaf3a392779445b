"""Windows: which tokens of a long text are read, in parts that an encoder reads one by one.

All windows of a text but the last are full, so that the tokens of a text, one window after another, can be cut apart by
their length alone. `window_pool.WindowPool` makes one vector of the windows' vectors.
"""

from __future__ import annotations

from typing import Literal

Choice = Literal["first", "ends", "spread"]
Joining = Literal["mean", "max", "attention"]


def cut_windows(n_tokens: int, size: int, windows: int, choice: Choice) -> list[tuple[int, int]]:
    """Return (start, stop) of the windows of a text: at most so many, of `size` tokens each, without overlap.

    A text that they can hold is read whole, in as few as needed; the last may be shorter. Of a longer one, the first
    windows are read (first), the first and the last half of them (ends), or windows at even distances (spread).
    """
    needed = max(1, -(-n_tokens // size))
    if needed <= windows:
        return [(start, min(start + size, n_tokens)) for start in range(0, needed * size, size)]
    if choice == "ends":
        n_last = windows // 2
        starts = [i * size for i in range(windows - n_last)]
        starts += [n_tokens - i * size for i in range(n_last, 0, -1)]
    elif choice == "spread" and windows > 1:
        starts = [i * (n_tokens - size) // (windows - 1) for i in range(windows)]
    else:
        starts = [i * size for i in range(windows)]
    return [(start, start + size) for start in starts]
