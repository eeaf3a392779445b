"""Windows: split a long text into parts that an encoder reads one by one.

All windows of a text except the last are full, so that a text's concatenated windows can be split again by length
alone. `window_pool.WindowPool` combines the vectors of the windows into one.
"""

from __future__ import annotations

from typing import Literal

Choice = Literal["first", "ends", "spread"]
Joining = Literal["mean", "max", "attention"]


def cut_windows(n_tokens: int, size: int, windows: int, choice: Choice) -> list[tuple[int, int]]:
    """Return (start, stop) of the windows of a text: at most `windows`, of `size` tokens each, without overlap.

    A text that fits is read whole, in as few windows as needed; the last may be shorter. Of a longer text, the first
    windows are read (first), half of them at the start and half at the end (ends), or evenly spaced windows (spread).
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
