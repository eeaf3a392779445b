"""Learning-rate schedules: a factor between 0 and 1 for every step, the same for all parameter groups."""

from __future__ import annotations

from typing import Literal

Schedule = Literal["constant", "linear", "slanted"]


def factor(schedule: Schedule, step: int, n_steps: int, warmup: float) -> float:
    """Return the factor of step `step` (from 0) of n_steps; `warmup` is the share of steps spent rising from 0 to 1.

    constant stays at 1 after the rise; linear and slanted fall to 0 at the end: slanted triangular (APLC-XLNet Eq. 15;
    Howard and Ruder 2018) is the linear one whose first step, too, has a rate: t_w = 0 starts at the full rate.
    """
    rise = warmup * n_steps
    if schedule == "slanted":
        if step < rise:
            return (step + 1) / (rise + 1)
        return max(0.0, (n_steps - step) / max(1.0, n_steps - rise))
    if step < rise:
        return step / rise
    if schedule == "constant":
        return 1.0
    return max(0.0, (n_steps - step) / max(1.0, n_steps - rise))
