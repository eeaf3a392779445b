"""Arrays of a model folder, checked before a kernel uses them as indices.

A model folder may come from an untrusted source, whose checksums prove nothing. Compiled kernels do not check bounds,
so one wrong number would read or write outside an array. Code that rebuilds a part of a model reads each array with
`check_array` and states what its kernels assume. Arrays stay mapped; a check reads them once, in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import ModelError

LARGEST_WEIGHT = 1e6  # for networks: trained weights are far smaller, and larger ones overflow to NaN
_BLOCK = 1 << 18  # elements checked together: they and the intermediate results fit into the processor's cache
_EXPONENT = {"float16": (np.uint16, 0x7C00), "float32": (np.uint32, 0x7F800000)}  # all ones in NaN and infinity


class StoredArrays(dict[str, NDArray[Any]]):
    """Arrays by name, and the folder that stores them as <name>.npy."""

    folder: Path


def misfit(arrays: Mapping[str, NDArray[Any]], name: str, reason: str) -> ModelError:
    """Return the error for an array that does not fit; it names the array's file, if there is one."""
    place = f"{arrays.folder / name}.npy" if isinstance(arrays, StoredArrays) else f"array {name!r}"
    return ModelError(f"{place} {reason}; train the model again, or copy it from a source that you trust")


def check_array(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    *dtypes: str,
    ndim: int = 1,
    length: int | None = None,
    within: tuple[int, int] | None = None,
    rises_to: int | None = None,
) -> NDArray[Any]:
    """Return an array by name; raise unless it meets the kernels' assumptions.

    dtypes: the allowed ones, in this machine's byte order; floats must be finite. within: the minimum and maximum
    value. rises_to: for offsets, which start at 0, never fall, and end here.
    """
    if name not in arrays:
        raise misfit(arrays, name, "is missing")
    array = arrays[name]
    if array.ndim != ndim or array.dtype.name not in dtypes or not array.dtype.isnative:
        raise misfit(
            arrays,
            name,
            f"must be a {ndim}-dimensional array of {' or '.join(dtypes)}; got {array.dtype} of shape {array.shape}",
        )
    if length is not None and len(array) != length:
        raise misfit(arrays, name, f"must have {length:,} entries; got {len(array):,}")
    if rises_to is not None and (len(array) == 0 or array[0] != 0 or array[-1] != rises_to):
        raise misfit(arrays, name, f"must start at 0 and end at {rises_to:,}")
    if within is not None and array.dtype.kind == "f" and float(np.finfo(array.dtype).max) <= within[1]:
        within = None  # guaranteed by the type itself
    flat = array.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK + (rises_to is not None)]  # one more, for the step to the next block
        if array.dtype.kind == "f":
            bits, ones = _EXPONENT.get(array.dtype.name, (None, 0))
            wrong = not np.isfinite(block).all() if bits is None else (block.view(bits) & bits(ones)).max() == ones
            if wrong:
                raise misfit(arrays, name, "holds NaN or infinity")
        if within is not None and (block.min().item() < within[0] or block.max().item() > within[1]):
            raise misfit(arrays, name, f"must hold numbers from {within[0]:,} to {within[1]:,}")
        if rises_to is not None and (block[1:] < block[:-1]).any():
            raise misfit(arrays, name, "must not fall: its numbers are offsets")
    return array
