"""ONNX files of strangers: loops, functions and tensors in other files are refused, and so is what is not ONNX."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xmtc.core.errors import ModelError
from xmtc.neural.graph import Graph
from xmtc.neural.graph_check import find_graph_fault

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def value(name: str, kind: int = TensorProto.FLOAT, shape: Any = (None, 2)) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def make(nodes: list[Any], tensors: list[Any] = (), outputs: tuple[str, ...] = ("text",), **more: Any) -> Any:  # type: ignore[assignment]
    graph = helper.make_graph(nodes, "graph", [value("ids")], [value(name) for name in outputs], list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, **more)


def weight() -> Any:
    return numpy_helper.from_array(np.eye(2, dtype=np.float32), "weight")


def good() -> Any:
    return make([helper.make_node("MatMul", ["ids", "weight"], ["text"])], [weight()])


def loop() -> Any:
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["x"], ["y"])],
        "body",
        [value("i", TensorProto.INT64, ()), value("go", TensorProto.BOOL, ()), value("x")],
        [value("on", TensorProto.BOOL, ()), value("y")],
    )
    most = numpy_helper.from_array(np.array(2**62), "most")
    go = numpy_helper.from_array(np.array(True), "go_on")
    return make([helper.make_node("Loop", ["most", "go_on", "ids"], ["text"], body=body)], [most, go])


def hidden_loop() -> Any:
    inner = loop().graph
    del inner.input[:]
    chosen = helper.make_node("If", ["yes"], ["text"], then_branch=inner, else_branch=inner)
    return make([chosen], [numpy_helper.from_array(np.array(True), "yes")])


def elsewhere(nested: bool) -> Any:
    tensor = weight()
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../secret"
    if nested:
        return make([helper.make_node("Constant", [], ["text"], value=tensor)])
    return make([helper.make_node("MatMul", ["ids", "weight"], ["text"])], [tensor])


def functions() -> Any:
    node = helper.make_node("Identity", ["a"], ["b"])
    function = helper.make_function("own", "twice", ["a"], ["b"], [node], [helper.make_opsetid("", 17)])
    return make([helper.make_node("twice", ["ids"], ["text"], domain="own")], functions=[function])


def read(tmp_path: Path, content: bytes) -> Graph:
    path = tmp_path / "graph.onnx"
    path.write_bytes(content)
    reader: Any = SimpleNamespace(folder=tmp_path, data=lambda name: np.memmap(path, dtype=np.uint8, mode="r"))
    return Graph(reader)


def test_an_ordinary_graph_runs(tmp_path: Path) -> None:
    found = read(tmp_path, good().SerializeToString()).run({"ids": np.ones((3, 2), np.float32)})
    assert found["text"].tolist() == [[1, 1]] * 3


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (loop(), "has a loop"),
        (hidden_loop(), "has a loop"),
        (elsewhere(nested=False), "has tensors in other files"),
        (elsewhere(nested=True), "has tensors in other files"),
        (functions(), "defines functions of its own"),
    ],
)
def test_hostile_graphs_are_refused(model: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=words):
        read(tmp_path, model.SerializeToString())


def test_what_is_not_onnx_is_refused_without_an_error_of_its_own(tmp_path: Path) -> None:
    content = good().SerializeToString()
    draw = np.random.default_rng(0)
    for cut in range(0, len(content), 7):
        find_graph_fault(memoryview(content[:cut]))
    for _ in range(300):
        noise = bytearray(content)
        for at in draw.integers(0, len(noise), 4).tolist():
            noise[at] = int(draw.integers(256))
        find_graph_fault(memoryview(bytes(noise)))
    assert find_graph_fault(memoryview(b"\xff" * 50)) == "is not an ONNX file"
    deep = b""
    for _ in range(30):  # a graph in an attribute of a node of a graph …
        attribute = b"\x32" + length(deep)
        node = b"\x2a" + length(attribute)
        deep = b"\x0a" + length(node)
    assert find_graph_fault(memoryview(b"\x3a" + length(deep))) == "nests graphs too deeply"


def length(content: bytes) -> bytes:
    """The content after its length, as protobuf stores it."""
    size, out = len(content), b""
    while True:
        size, byte = size >> 7, size & 0x7F
        out += bytes([byte | (0x80 if size else 0)])
        if not size:
            return out + content


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([("MatMul", ["ids", "weight"]), ("Log", ["before"])], "holds NaN or too large numbers"),
        ([("MatMul", ["ids", "weight"]), ("Cast", ["before"])], "is not of 32-bit floats"),
    ],
)
def test_outputs_are_checked(nodes: list[tuple[str, list[str]]], words: str, tmp_path: Path) -> None:
    (first, given), (second, between) = nodes
    more = {"to": TensorProto.DOUBLE} if second == "Cast" else {}
    made = [helper.make_node(first, given, ["before"]), helper.make_node(second, between, ["text"], **more)]
    model = make(made, [weight()])
    if second == "Cast":
        model.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    graph = read(tmp_path, model.SerializeToString())
    with pytest.raises(ModelError, match=words):
        graph.run({"ids": np.full((1, 2), -1, np.float32)})
    with pytest.raises(ModelError, match="cannot be run"):
        graph.run({"ids": np.ones((1, 7), np.float32)})
