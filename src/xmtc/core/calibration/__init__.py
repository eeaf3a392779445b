"""Calibration: turns a model's scores into probabilities and finds thresholds that reach a precision or recall."""

from xmtc.core.calibration.calibration import (
    DEPTH,
    Calibration,
    calibration_error,
    check_method,
    fit_calibration,
)
from xmtc.core.calibration.curves import CurveMethod
from xmtc.core.calibration.model import (
    UNCALIBRATED,
    CalibratedModel,
    add_calibration,
    calibration_of,
    find_threshold,
    uncalibrated,
    with_calibration,
)
from xmtc.core.calibration.thresholds import Threshold

__all__ = [
    "DEPTH",
    "UNCALIBRATED",
    "CalibratedModel",
    "Calibration",
    "CurveMethod",
    "Threshold",
    "add_calibration",
    "calibration_error",
    "calibration_of",
    "check_method",
    "find_threshold",
    "fit_calibration",
    "uncalibrated",
    "with_calibration",
]
