from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from xmtc.data import DataWarning, detect, read_corpus, splits

LINES = 'no subjects yet\t\nA "title"\t<http://x.org/a> <http://x.org/b>\n\nBare\thttp://x.org/a\n'


def test_texts_and_uris(tmp_path: Path) -> None:
    (tmp_path / "train.tsv.gz").write_bytes(gzip.compress(LINES.encode()))
    (tmp_path / "test.tsv").write_text("t\t<http://x.org/c>\n")
    assert (detect(tmp_path), splits(tmp_path)) == ("annif", ["train", "test"])
    with pytest.warns(DataWarning, match="kept documents without labels: 1$"):
        corpus = read_corpus(tmp_path)
    assert corpus.texts == ["no subjects yet", 'A "title"', "Bare"]
    a, b = "http://x.org/a", "http://x.org/b"
    assert [corpus.labels.decode(row.indices) for row in corpus.Y] == [[], [a, b], [a]]
    with pytest.warns(DataWarning):
        assert len(read_corpus(tmp_path / "train.tsv.gz")) == 3


def test_tables_with_a_header_stay_tables(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("text\tlabels\nan http://x.org\t<a>\n")
    assert detect(tmp_path) == "tsv"
    assert read_corpus(tmp_path).labels.ids == ("<a>",)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no tab", "no tab in this line; write the text, a tab and URIs"),
        ("t\t<http://x.org/a", "'<http://x.org/a' is not a URI in angle brackets"),
        ("t\t<a><b>", "'<a><b>' is not a URI in angle brackets"),
        ("t\t<>", "'<>' is not a URI in angle brackets"),
    ],
)
def test_wrong_lines_are_refused(tmp_path: Path, refusal, line: str, reason: str) -> None:
    path = tmp_path / "train.tsv"
    path.write_text(f"t\t<http://x.org/a>\n{line}\n")
    assert refusal(read_corpus, path).startswith(f"{path}, line 2: {reason}")


def test_training_never_opens_the_test_split(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("t\t<http://x.org/a>\n")
    (tmp_path / "test.tsv").write_bytes(b"\xff\n")
    assert len(read_corpus(tmp_path)) == 1
