from __future__ import annotations

from pathlib import Path

import pytest

from xmtc.core.labels import Concept
from xmtc.data.vocabulary.concepts import find_circle, read_concepts


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_all_fields(tmp_path: Path) -> None:
    path = write(
        tmp_path / "labels.jsonl",
        '{"label": "a", "name": "A", "alternatives": ["x y", "z"], "description": "d", "parents": ["b", 5], "z": 0}',
        '{"label": "b"}',
        '{"label": "c", "name": null, "alternatives": null, "description": null, "parents": null}',
    )
    described = read_concepts(path)
    assert described.concepts == [Concept("a", "A", ("x y", "z"), "d", ("b", "5")), Concept("b"), Concept("c")]
    assert described.undescribed == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"name": "x"}', "no key 'label'"),
        ('{"label": 1.5}', "'label' must hold strings or whole numbers"),
        ('{"label": "x", "name": 3}', "'name' must be a string, got a whole number"),
        ('{"label": "x", "parents": "a"}', "'parents' must be a list, got a string"),
        ('{"label": "x", "parents": [null]}', "'parents' must hold strings or whole numbers, got null"),
        ('{"label": "x", "alternatives": [[]]}', "'alternatives' must hold strings"),
        ('{"label": "a"}', "label 'a' is described a second time"),
        ("oops", "not valid JSON"),
    ],
)
def test_wrong_lines_are_refused_with_their_number(tmp_path: Path, refusal, line: str, reason: str) -> None:
    path = write(tmp_path / "labels.jsonl", '{"label": "a"}', line)
    message = refusal(read_concepts, path)
    assert message.startswith(f"{path}, line 2: ")
    assert reason in message


def test_a_circle_is_refused_by_the_names_of_its_labels(tmp_path: Path, refusal) -> None:
    path = write(
        tmp_path / "labels.jsonl",
        '{"label": "below", "parents": ["a"]}',
        '{"label": "a", "parents": ["root", "b"]}',
        '{"label": "b", "parents": ["c"]}',
        '{"label": "c", "parents": ["a"]}',
        '{"label": "root"}',
    )
    assert refusal(read_concepts, path) == (
        f"{path}: the hierarchy runs in a circle: a → b → c → a; remove one of these parents"
    )


@pytest.mark.parametrize(
    ("parents", "circle"),
    [
        ({"a": ("a",)}, ["a", "a"]),
        ({"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ()}, []),  # two ways up are no circle
        ({"a": ("b", "b"), "b": ("unknown",)}, []),
        ({"x": ("a",), "a": ("b",), "b": ("a",)}, ["a", "b", "a"]),
        ({}, []),
    ],
)
def test_find_circle(parents: dict[str, tuple[str, ...]], circle: list[str]) -> None:
    assert find_circle(Concept(label, parents=above) for label, above in parents.items()) == circle


def test_deep_hierarchies_do_not_exhaust_the_stack() -> None:
    assert find_circle(Concept(str(i), parents=(str(i + 1),)) for i in range(100_000)) == []
