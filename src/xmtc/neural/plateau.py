"""Plateau: settings of learning rates that depend on dev scores."""

from __future__ import annotations

from pydantic import Field

from xmtc.core.config import Settings


class Plateau(Settings):
    """Rates that fall, on top of any schedule, whenever dev does not improve."""

    epochs: int = Field(1, ge=1, description="epochs without a better dev score before the rates fall")
    factor: float = Field(0.5, gt=0, lt=1, description="factor by which the rates are multiplied each time")
