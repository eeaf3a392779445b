"""Half-precision weights inside compiled loops, on processors and in numba versions without float16.

A float16 array is passed to a kernel as `view(uint16)`; `as_float` converts one of its numbers to float32. A float32 is
returned unchanged, so that one kernel serves both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

_UNIT = 2.0**112  # the factor between a half's exponent, moved into a float's bits, and the float's own


def bits_of(weights: NDArray[np.floating]) -> NDArray[Any]:
    """Return float16 weights as the bits that `as_float` reads, float32 unchanged; copies nothing."""
    return weights.view(np.uint16) if weights.dtype == np.float16 else weights


@intrinsic
def as_float(typingctx, weight):  # type: ignore[no-untyped-def]
    """Return a weight as float32: exact, also for subnormal halves."""

    def widen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        word, single = ir.IntType(32), ir.FloatType()
        bits = builder.zext(args[0], word)
        sign = builder.shl(builder.and_(bits, word(0x8000)), word(16))
        rest = builder.shl(builder.and_(bits, word(0x7FFF)), word(13))
        return builder.fmul(builder.bitcast(builder.or_(sign, rest), single), ir.Constant(single, _UNIT))

    def keep(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return args[0]

    return types.float32(weight), widen if weight == types.uint16 else keep
