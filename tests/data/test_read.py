from __future__ import annotations

from pathlib import Path

import pytest

from xmtc.data import detect, read_corpus, splits

GOOD = '{"text": "t", "labels": ["a"]}\n'


def test_unknown_split_says_what_is_there(tmp_path: Path, refusal) -> None:
    (tmp_path / "train.jsonl").write_text(GOOD)
    (tmp_path / "test.jsonl").write_text(GOOD)
    message = refusal(read_corpus, tmp_path, "tests")
    assert message == f"{tmp_path} has no split 'tests'; it has train, test. Did you mean 'test'?"
    assert refusal(read_corpus, tmp_path, "dev").startswith(f"{tmp_path} has no split 'dev'; it has train, test.")


def test_missing_path_suggests_the_nearest(tmp_path: Path, refusal) -> None:
    (tmp_path / "eurlex").mkdir()
    message = refusal(read_corpus, tmp_path / "eurlx")
    assert message == f"{tmp_path / 'eurlx'} does not exist. Did you mean 'eurlex'?"
    assert refusal(detect, tmp_path / "no" / "where").endswith("does not exist. Check the path.")


def test_unknown_layouts_say_what_was_found(tmp_path: Path, refusal) -> None:
    assert "it contains nothing" in refusal(read_corpus, tmp_path)
    (tmp_path / "notes.md").touch()
    assert refusal(splits, tmp_path).startswith(f"{tmp_path} has no known layout (it contains notes.md)")
    assert refusal(detect, tmp_path / "notes.md").startswith(f"{tmp_path / 'notes.md'} has no known format; name it")
    assert "does not exist" in refusal(read_corpus, tmp_path / "notes.md" / "deeper")
    assert "cannot read" in refusal(read_corpus, tmp_path / ("x" * 5000))


@pytest.mark.parametrize(
    ("there", "lacking", "layout"),
    [
        ("trn_X_Xf.txt", "trn_X_Y.txt", "xml-repository-sparse"),
        ("tst_X_Y.txt.gz", "tst_X_Xf.txt", "xml-repository-sparse"),
        ("train_raw_texts.txt", "train_labels.txt", "attentionxml"),
        ("test_labels.txt", "test_raw_texts.txt", "attentionxml"),
        ("trn.json.gz", "lbl.json", "xml-repository-texts"),
    ],
)
def test_half_a_layout_says_which_file_is_missing(
    tmp_path: Path, refusal, there: str, lacking: str, layout: str
) -> None:
    (tmp_path / there).touch()
    message = refusal(read_corpus, tmp_path)
    assert message == f"{tmp_path} holds {there} but not {lacking}; add that: the {layout} layout needs both"


def test_half_a_split_says_which_file_is_missing(tmp_path: Path, refusal) -> None:
    (tmp_path / "trn_X_Xf.txt").write_text("1 1\n0:1\n")
    (tmp_path / "trn_X_Y.txt").write_text("1 1\n0:1\n")
    message = refusal(read_corpus, tmp_path, "test")
    assert message == f"{tmp_path} has no split 'test'; it has train."
    (tmp_path / "tst_X_Xf.txt").touch()
    message = refusal(read_corpus, tmp_path, "test")
    assert message.endswith("it has train. It holds tst_X_Xf.txt but not tst_X_Y.txt: add that.")


def test_native_wins_over_other_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(GOOD)
    (tmp_path / "about.json").write_text("{}")
    (tmp_path / "train.csv").write_text("broken")
    (tmp_path / "train.txt").write_text("broken")
    assert detect(tmp_path) == "native"
    assert len(read_corpus(tmp_path)) == 1


def test_shared_data_sets(shared_data: Path) -> None:
    assert splits(shared_data / "eurlex57k") == ["train", "dev", "test"]
    tate = read_corpus(shared_data / "tate")
    assert (len(tate), tate.labels.n_labels) == (47_021, 14_386)
    cooking = read_corpus(shared_data / "cooking", "test")
    assert len(cooking) == 3_000
