"""Warnings about the names of labels: a vocabulary that does not fit, and labels that it leaves without a name."""

from __future__ import annotations

import json
import warnings

import pytest

from xmtc.data import DataWarning, read_corpus


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def read(tmp_path):
    """Read ten documents of ten labels with a labels file; return the warnings."""

    def read(described):
        lines(tmp_path / "train.jsonl", ({"text": f"text {i}", "labels": [f"L{i}"]} for i in range(10)))
        lines(tmp_path / "labels.jsonl", described)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            read_corpus(tmp_path, "train")
        return [str(one.message) for one in found if one.category is DataWarning]

    return read


def test_a_vocabulary_of_other_labels(read):
    (line,) = read([{"label": f"http://x/{i}", "name": f"name {i}"} for i in range(10)])
    assert "the vocabulary describes none of the 10 labels used ('L0' here, 'http://x/0' there)" in line


def test_a_vocabulary_of_few_labels(read):
    (line,) = read([{"label": "L3", "name": "three"}])
    assert "the vocabulary describes 1 of the 10 labels used" in line


def test_labels_without_names(read):
    (line,) = read([{"label": f"L{i}", **({"name": f"name {i}"} if i < 7 else {})} for i in range(9)])
    assert line.endswith(": 3 of the 10 labels have no name, and are shown by their ids")


@pytest.mark.parametrize("name", ["name", None])
def test_nothing_is_said_of_a_vocabulary_that_fits(read, name):
    """Neither where all labels have names, nor where no label of the vocabulary has one."""
    assert read([{"label": f"L{i}", **({"name": name} if name else {})} for i in range(10)]) == []
