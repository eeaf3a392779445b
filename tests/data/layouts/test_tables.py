from __future__ import annotations

from pathlib import Path

from xmtc.data import detect, read_corpus, splits


def test_folders_of_tables_use_a_labels_file(tmp_path: Path) -> None:
    for split in ("test", "train", "dev"):
        (tmp_path / f"{split}.csv").write_text(f"text,labels\n{split},a\n")
    (tmp_path / "labels.jsonl").write_text('{"label": "a", "name": "Alpha"}\n')
    assert (detect(tmp_path), splits(tmp_path)) == ("csv", ["train", "dev", "test"])
    assert list(read_corpus(tmp_path, "dev").texts) == ["dev"]
    assert read_corpus(tmp_path).labels.names == ("Alpha",)
