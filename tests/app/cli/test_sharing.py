"""Models pushed to a hub that is a small server here, pulled and loaded from it; altered ones are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.conftest import fails, xmtc
from tests.app.stand_in_hub import TOKEN, Hub, running
from xmtc import api
from xmtc.core.errors import ModelError, Notice

constants = pytest.importorskip("huggingface_hub.constants")

TEXTS = ["regulation on sugar beet", "fish and boats"]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with running() as hub:
        point_to(hub.address, tmp_path, monkeypatch)
        yield hub


def point_to(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What HF_ENDPOINT and others set when the client is imported, which another test may have done."""
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    )
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def same_ranking(first: Path | str, second: Path | str) -> bool:
    one, other = (api.load(folder).rank(TEXTS, 5) for folder in (first, second))
    return bool((one.labels == other.labels).all() and (one.scores == other.scores).all())


def test_pushed_and_pulled_it_is_the_same_to_the_byte(hub: Hub, model: Path, data: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.json"
    scores.write_text(xmtc("evaluate", model, data, "--json").out)
    pushed = xmtc("push", model, "hf:me/tags", "--scores", scores, "--licence", "cc-by-4.0", "--private")
    assert pushed.code == 0, pushed
    assert pushed.out == f"{hub.address}/me/tags\n"
    assert "MB, to hf:me/tags" in pushed.err
    assert hub.private == {"me/tags"}
    sent = hub.commits["me/tags"][hub.head("me/tags")]
    assert {name for name in sent if name not in ("README.md", ".gitattributes")} == set(files_of(model))
    assert hub.objects  # some went by LFS

    pulled = xmtc("pull", "hf:me/tags", "--out", tmp_path / "copy")
    assert pulled.code == 0, pulled
    assert f"hf:me/tags: {len(files_of(model))} files, 0.0 MB" in pulled.err
    assert files_of(tmp_path / "copy") == files_of(model)
    assert same_ranking(tmp_path / "copy", model)
    assert "exists already" in fails("pull", "hf:me/tags", "--out", tmp_path / "copy")
    assert xmtc("pull", "hf:me/tags", "--out", tmp_path / "copy", "--overwrite").code == 0

    card = sent["README.md"].decode()
    report = json.loads(scores.read_text())
    low, high = report["intervals"]["P@1"]
    assert card.startswith("---\nlicense: cc-by-4.0\nlibrary_name: xmtc\n")
    assert f"{report['metrics']['P@1']:.2f} ({low:.2f} to {high:.2f})" in card
    assert f"{report['metrics']['macro-F@5/medium']:.2f} (" in card
    assert 'xmtc.load("hf:me/tags")' in card
    assert "| Training documents | 120 |" in card
    assert str(data.parent) not in card
    assert f"`{data.name}`" in card


def test_a_second_push_replaces_the_first(hub: Hub, model: Path, other_model: Path, tmp_path: Path) -> None:
    assert xmtc("push", model, "hf:me/tags").code == 0
    first = hub.head("me/tags")
    hub.commit("me/tags", {**hub.commits["me/tags"][first], "old-tree/weights.npy": b"stale"})
    assert xmtc("push", other_model, "hf:me/tags").code == 0
    assert "old-tree/weights.npy" not in hub.commits["me/tags"][hub.head("me/tags")]
    assert same_ranking("hf:me/tags", other_model)
    assert same_ranking(f"hf:me/tags@{first}", model)


def test_loading_fetches_once_and_then_works_without_network(
    hub: Hub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert xmtc("push", model, "hf:me/tags").code == 0
    with pytest.warns(Notice, match=r"hf:me/tags: \d+ files, 0.0 MB"):
        api.load("hf:me/tags")
    fetched = len(hub.fetched)
    assert fetched == len(files_of(model))  # no card, nothing that is not listed
    assert same_ranking("hf:me/tags", model)
    assert xmtc("predict", "hf:me/tags", "sugar beet").code == 0
    assert len(hub.fetched) == fetched
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.warns(Notice, match="using the earlier copy"):
        api.load("hf:me/tags")
    shutil.rmtree(tmp_path / "cache")
    line = fails("predict", "hf:me/tags", "sugar beet")
    assert "hf:me/tags: the hub did not provide it (" in line


def test_what_was_altered_or_is_no_model_is_refused(hub: Hub, model: Path, tmp_path: Path) -> None:
    assert xmtc("push", model, "hf:me/tags").code == 0
    good = hub.commits["me/tags"][hub.head("me/tags")]
    large = next(name for name in good if name.endswith(".npy"))

    def pull() -> str:
        line = fails("pull", "hf:me/tags", "--out", tmp_path / "copy")[len("error: ") :]
        assert not (tmp_path / "copy").exists()
        assert [path for path in tmp_path.iterdir() if "writing" in path.name] == []
        return line

    hub.commit("me/tags", {**good, large: good[large][:-1] + bytes([good[large][-1] ^ 1])})
    # its size said before, on a line of its own
    assert xmtc("pull", "hf:me/tags", "--out", tmp_path / "copy").err.splitlines()[-1] == (
        f"error: hf:me/tags/{large} is altered: its sha256 is not the one in model.json; copy the folder again; "
        "the downloaded files are removed"
    )
    hub.commit("me/tags", {name: raw for name, raw in good.items() if name != "model.json"})
    assert "it is not an xmtc model" in pull()
    hub.commit("me/tags", {**good, "model.json": b'{"files": {"../../outside": {"size": 1}}}'})
    assert pull().startswith("hf:me/tags is not an xmtc model")
    hub.commit("me/tags", {**good, "model.json": b"[" * 100_000})
    assert pull().startswith("hf:me/tags is not an xmtc model")
    with pytest.raises(ModelError, match="not an xmtc model"):
        api.load("hf:me/tags")


def test_mistakes_are_one_line(hub: Hub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("me/tags", "hf:tags", "hf:a/b/c", "hf:", "hf:me/..", "hf:me/ta gs", "hf:me/tags@"):
        assert "does not name a model on the hub" in fails("push", model, name)
    assert "there is no such model" in fails("pull", "hf:me/nothing", "--out", tmp_path / "copy")
    assert "is not a licence of the hub" in fails("push", model, "hf:me/tags", "--licence", "my own: one")
    assert "does not hold scores" in fails("push", model, "hf:me/tags", "--scores", model / "model.json")
    assert "cannot read the scores" in fails("push", model, "hf:me/tags", "--scores", tmp_path / "nothing")
    assert "is not a model folder" in fails("push", tmp_path, "hf:me/tags")
    assert xmtc("push", model, "hf:me/tags").code == 0
    assert "the hub did not provide it" in fails("pull", f"hf:me/tags@{'0' * 40}", "--out", tmp_path / "copy")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert "the hub did not accept it" in xmtc("push", model, "hf:me/tags").err.splitlines()[-1]
    monkeypatch.delenv("HF_TOKEN")
    assert "no token of the hub; log in with `hf auth login`" in fails("push", model, "hf:me/tags")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "hf:me/tags: the hub did not provide it (" in fails("pull", "hf:me/tags", "--out", tmp_path / "copy")
