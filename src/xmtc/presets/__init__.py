"""Presets: documents and a time limit → one model, without choosing methods or settings. See docs/PRESETS.md."""

from xmtc.presets.plan import PRESETS, check_preset
from xmtc.presets.run import PresetRun, Trainers

__all__ = ["PRESETS", "PresetRun", "Trainers", "check_preset"]
