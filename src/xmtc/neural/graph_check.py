"""Check an ONNX file before onnxruntime reads it: no loops, no functions, no data in other files.

A graph may be untrusted. Without loops, its work is bounded by its nodes and its input. A tensor stored elsewhere would
make onnxruntime read a file that the model does not list. This module reads only the protobuf's outline, so the package
onnx is not needed; field numbers are those of ONNX's published schema (onnx.proto3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

Bytes: TypeAlias = memoryview
_LOOPS = {b"Loop", b"Scan", b"SequenceMap"}
_DEEPEST = 20  # maximum depth of graphs inside node attributes
# message → its fields that hold messages, by number
_INSIDE = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse tensor", 23: "sparse tensor"},
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": dict[int, str](),
}
_FUNCTIONS, _OPERATOR, _EXTERNAL_DATA, _LOCATION = 25, 4, 13, 14


def find_graph_fault(content: Bytes) -> str | None:
    """Return what is wrong with the bytes of an ONNX file; None if onnxruntime may read it."""
    try:
        return _look(content, "model", 0)
    except (ValueError, IndexError):
        return "is not an ONNX file"


def _look(message: Bytes, kind: str, depth: int) -> str | None:
    if depth > _DEEPEST:
        return "nests graphs too deeply"
    for field, value in _fields(message):
        if kind == "model" and field == _FUNCTIONS:
            return "defines functions of its own"
        if kind == "tensor" and (field == _EXTERNAL_DATA or (field == _LOCATION and value != 0)):
            return "has tensors in other files"
        if isinstance(value, int):
            continue
        if kind == "node" and field == _OPERATOR and bytes(value) in _LOOPS:
            return f"has a loop ({bytes(value).decode()})"
        inner = _INSIDE[kind].get(field)
        if inner is not None and (fault := _look(value, inner, depth + (inner == "graph"))):
            return fault
    return None


def _fields(message: Bytes) -> Iterator[tuple[int, int | Bytes]]:
    """Yield the number and value of each field: an integer, or bytes; raise if the message is truncated."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        field, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield field, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"fields of kind {kind} are not used")
        if at + size > len(message):
            raise ValueError("it is cut")
        yield field, message[at : at + size]
        at += size


def _varint(message: Bytes, at: int) -> tuple[int, int]:
    """Return a number stored with seven bits per byte, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number is too long")
