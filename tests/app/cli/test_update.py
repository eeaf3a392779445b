"""xmtc update: labels and documents come in, labels go out; the model folder stays an ordinary one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import documents, fails, write_lines, xmtc
from xmtc import api
from xmtc.app.details import last_update
from xmtc.core.corpus import Corpus


def new_documents(n: int = 12) -> list[dict[str, Any]]:
    """Documents of a label that training never saw, in words that it did."""
    return [{"id": f"new-{i}", "text": "regulation butter tariff furnace", "labels": ["t6", "t4"]} for i in range(n)]


@pytest.fixture(scope="module")
def grown(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus with a new label, named in its labels file, below a parent that is new too."""
    folder = tmp_path_factory.mktemp("grown")
    shutil.copytree(data, folder, dirs_exist_ok=True)
    write_lines(folder / "train.jsonl", [*documents(120, seed=1), *new_documents()])
    with (folder / "labels.jsonl").open("a") as file:
        file.write(json.dumps({"label": "t6", "name": "alloys", "parents": ["metals"]}) + "\n")
        file.write(json.dumps({"label": "metals", "name": "metals of all kinds"}) + "\n")
    return folder


def test_a_new_label_is_learnt_and_every_command_takes_the_model(model: Path, grown: Path, tmp_path: Path) -> None:
    out = tmp_path / "updated"
    result = xmtc("update", model, grown, "--out", out)
    assert result.code == 0, result
    assert "1 new label in existing clusters, 3 of 3 nodes refitted" in result.err
    assert result.out.startswith(f"{out}: linear, ")
    assert "6 labels, 132 documents" in result.out
    best = xmtc("predict", out, "furnace butter tariff", "-k", 2, "--json").json["labels"]
    assert {"t6", "t4"} == {entry["label"] for entry in best}
    assert "alloys" in {entry["name"] for entry in best}
    assert xmtc("evaluate", out, grown, "--split", "test", "--json").json["n_labels"] >= 6
    assert xmtc("explain", out, "furnace butter tariff", "--label", "alloys").code == 0
    assert xmtc("inspect", out).code == 0
    updated = api.load(out)
    position = updated.labels.position
    assert updated.labels.names[position["metals"]] == "metals of all kinds"
    assert updated.labels.parents[position["t6"]] == (position["metals"],)
    assert updated.labels.n_labels == 6
    assert updated.labels.counts[position["t6"]] == 12
    corpus = api.read_corpus(grown)
    assert updated.labels.counts[position["t4"]] == corpus.labels.counts[corpus.labels.position["t4"]]
    assert updated.manifest.data == corpus.fingerprint()
    assert api.load(model).labels.n_labels == 5  # the first model stays as it was


def test_new_documents_beside_the_old_ones_are_the_whole_corpus(
    model: Path, data: Path, grown: Path, tmp_path: Path
) -> None:
    write_lines(tmp_path / "new.jsonl", new_documents())
    for name, arguments in {"whole": (grown,), "parts": (tmp_path / "new.jsonl", "--base", data)}.items():
        assert xmtc("update", model, *arguments, "--out", tmp_path / name).code == 0
    whole, parts = api.load(tmp_path / "whole"), api.load(tmp_path / "parts")
    texts = [document["text"] for document in documents(20, seed=3)]
    assert parts.rank(texts).named(parts.labels)[0][0][0] == whole.rank(texts).named(whole.labels)[0][0][0]
    assert parts.rank(texts).scores.tobytes() == whole.rank(texts).scores.tobytes()
    assert parts.manifest.n_documents == 132


def test_a_document_with_a_known_id_takes_the_place_of_the_old_one(model: Path, data: Path, tmp_path: Path) -> None:
    again = [{**document, "labels": [*document["labels"], "t7"]} for document in documents(120, seed=1)[:10]]
    write_lines(tmp_path / "again.jsonl", again)
    out = tmp_path / "updated"
    assert xmtc("update", model, tmp_path / "again.jsonl", "--base", data, "--out", out).code == 0
    updated = api.load(out)
    assert updated.manifest.n_documents == 120
    assert updated.labels.counts[updated.labels.position["t7"]] == 10


def test_new_documents_alone_teach_new_labels_and_this_is_told(model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "new.jsonl", new_documents())
    out = tmp_path / "updated"
    result = xmtc("update", model, tmp_path / "new.jsonl", "--out", out)
    assert result.code == 0
    assert "the training documents were not given" in result.err
    assert "132 documents" in result.out
    best = xmtc("predict", out, "furnace butter tariff", "-k", 1, "--json").json["labels"]
    assert best[0]["label"] == "t6"
    other = xmtc("predict", out, "sugar beet", "-k", 1, "--json").json["labels"]
    assert other[0]["label"] == "t1"  # pseudo-documents keep the new label from what it has nothing to do with
    write_lines(tmp_path / "known.jsonl", documents(5, seed=9))
    line = fails("update", model, tmp_path / "known.jsonl", "--out", tmp_path / "none")
    assert "no new label" in line
    assert "--base" in line


def test_retired_labels_are_never_ranked_again(model: Path, grown: Path, tmp_path: Path) -> None:
    out = tmp_path / "updated"
    result = xmtc("update", model, "--retire", "milk", "--retire", "t5", "--out", out)
    assert result.code == 0
    assert "2 labels retired" in result.err
    assert "3 labels, 120 documents" in result.out

    def ranked() -> set[str]:
        found = xmtc("predict", out, "milk dairy cow butter", "steel coal", "-k", 9, "--json").json_lines
        return {entry["label"] for line in found for entry in line["labels"]}

    assert ranked() == {"t1", "t2", "t3"}
    assert "is retired already" in fails("update", out, "--retire", "t4", "--out", tmp_path / "none")
    assert xmtc("update", out, grown, "--overwrite").code == 0  # the corpus still has them
    assert ranked() == {"t1", "t2", "t3", "t6"}
    assert xmtc("evaluate", out, grown, "--json").code == 0
    assert xmtc("inspect", out).code == 0


def test_a_model_without_clusters_mentions_none(data: Path, grown: Path, tmp_path: Path) -> None:
    assert xmtc("train", data, "--method", "knn", "--out", tmp_path / "knn").code == 0
    result = xmtc("update", tmp_path / "knn", grown, "--out", tmp_path / "newer")
    assert result.code == 0, result
    assert "1 new label, " in result.err


def test_a_calibration_does_not_carry_over(model: Path, data: Path, grown: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    shutil.copytree(model, first)
    api.calibrate(api.load(first), api.read_corpus(data, "test"), out=first)
    result = xmtc("update", first, grown, "--out", tmp_path / "updated")
    assert result.code == 0, result
    assert "calibrate it again" in result.err
    assert not (tmp_path / "updated" / "calibration.json").exists()


def test_mistakes_are_told_in_one_line(model: Path, data: Path, grown: Path, tmp_path: Path) -> None:
    out = tmp_path / "none"
    assert "nothing to update" in fails("update", model, "--out", out)
    assert "nothing to update" in fails("update", model, "--base", data, "--retire", "t1", "--out", out)
    assert "every label has as many documents" in fails("update", model, data, "--out", out)
    assert "--out" in fails("update", model, grown)
    assert "Did you mean 'sugar'?" in fails("update", model, "--retire", "suger", "--out", out)
    assert "all labels would be retired" in fails(
        "update", model, *(part for i in range(1, 6) for part in ("--retire", f"t{i}")), "--out", out
    )
    assert "nothing to retire" in fails("update", model, "--retire", "everything", "--out", out)
    assert "exists already" in fails("update", model, grown, "--out", model)
    assert "differs from the training data" in fails("update", model, grown, "--base", grown, "--out", out)
    assert "does not exist" in fails("update", model, tmp_path / "no.jsonl", "--out", out)
    assert "--budget" in fails("update", model, grown, "--out", out, "--budget", 2)
    (tmp_path / "features.txt").write_text("2 4 2\n0 0:1 3:1\n1 2:1\n")
    assert "features; give their texts" in fails("update", model, tmp_path / "features.txt", "--out", out)
    assert not out.exists()


def test_only_linear_models(model: Path, other_model: Path, grown: Path, tmp_path: Path) -> None:
    joined = tmp_path / "joined"
    assert xmtc("ensemble", model, other_model, "--out", joined).code == 0
    assert "update its linear, knn and match members" in fails("update", joined, grown, "--out", tmp_path / "none")


def test_models_of_features(tmp_path: Path) -> None:
    rows = [f"{i % 3} {i % 3}:1 {3 + i % 2}:0.5" for i in range(30)]
    (tmp_path / "first.txt").write_text("\n".join(["30 6 3", *rows]) + "\n")
    (tmp_path / "second.txt").write_text("\n".join(["40 6 4", *rows, *["3 5:1 3:0.2"] * 10]) + "\n")
    (tmp_path / "wide.txt").write_text("\n".join(["40 9 4", *rows, *["3 8:1 3:0.2"] * 10]) + "\n")
    first, out = tmp_path / "first", tmp_path / "second"
    assert xmtc("train", tmp_path / "first.txt", "--out", first).code == 0
    assert xmtc("update", first, tmp_path / "second.txt", "--out", out).code == 0
    found = xmtc("evaluate", out, tmp_path / "second.txt", "--json").json
    assert found["metrics"]["P@1"] == 100
    assert "trained on 6 features" in fails("update", first, tmp_path / "wide.txt", "--out", tmp_path / "none")
    write_lines(tmp_path / "texts.jsonl", new_documents())
    assert "texts; give their features" in fails("update", first, tmp_path / "texts.jsonl", "--out", tmp_path / "none")


def of_labels(numbers: range, held: set[int]) -> Corpus:
    """Documents of two labels each, 100 in all, in words that tell them; labels held back are left out."""
    texts, lists = [], []
    for i in numbers:
        labels = {i % 100, (7 * i + i // 100) % 100}
        texts.append(" ".join(f"topic{label} word{label}" for label in sorted(labels)) + f" filler{i % 11}")
        lists.append([f"l{label}" for label in sorted(labels - held)])
    return Corpus.from_lists(texts, lists)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_updates_follow_each_other_and_repeat_on_any_number_of_threads(
    threads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: dict[str, bytes]
) -> None:
    monkeypatch.setenv("XMTC_THREADS", threads)
    few, many = {0, 33, 66}, set(range(1, 90, 2))
    config = {"cluster": {"size": 20}}
    model = api.train(of_labels(range(600), few | many), config=config)
    joined = api.update(model, of_labels(range(600), many))
    assert last_update(joined)["new_clusters"] == 0
    branched = api.update(joined, of_labels(range(600), set()))
    assert last_update(branched)["new_clusters"] == 3
    retired = api.update(branched, retire=["l0", "l1", "l2"])
    last = api.update(retired, of_labels(range(900), set()), budget=1)
    assert last_update(last)["waiting_nodes"] == 0
    assert [len(tree.leaf_labels) for tree in last.trees] == [97] * 3  # type: ignore[attr-defined]
    last.save(tmp_path / "last")
    best = api.load(tmp_path / "last").rank([f"topic{i} word{i}" for i in range(100)], 1).named(last.labels)
    assert [found[0][0] for found in best[3:]] == [f"l{i}" for i in range(3, 100)]
    assert {found[0][0] for found in best[:3]}.isdisjoint({"l0", "l1", "l2"})
    manifest = (tmp_path / "last" / "model.json").read_bytes()
    assert folders.setdefault("last", manifest) == manifest  # it names the sha256 of every file


@pytest.fixture(scope="module")
def folders() -> dict[str, bytes]:
    """What a first run leaves for the second to compare with."""
    return {}


def test_labels_of_a_vocabulary_need_no_documents(model: Path, data: Path, tmp_path: Path) -> None:
    vocabulary = tmp_path / "labels.jsonl"
    vocabulary.write_text(json.dumps({"label": "n1", "name": "lithium battery"}) + "\n")
    trained, out = tmp_path / "match", tmp_path / "grown"
    assert xmtc("train", data, "--method", "match", "--out", trained).code == 0
    done = xmtc("update", trained, "--labels", vocabulary, "--out", out)
    assert done.code == 0, done
    assert "1 new label without documents" in done.err
    assert xmtc("predict", out, "lithium batteries", "-k", 1, "--json").json["labels"][0]["label"] == "n1"
    assert xmtc("explain", out, "lithium batteries", "--label", "n1").code == 0
    assert "a linear model gives only labels that it was trained on" in fails(
        "update", model, "--labels", vocabulary, "--out", tmp_path / "never"
    )
    vocabulary.write_text("")
    assert "holds no label" in fails("update", trained, "--labels", vocabulary, "--out", tmp_path / "never")
