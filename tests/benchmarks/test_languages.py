"""benchmarks.languages on a small catalogue: messages become corpora, and a comparison becomes a page."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from benchmarks import languages
from xmtc.core.errors import DataError

pytest.importorskip("Stemmer")

THINGS = {"file": ("Datei", "Dateien"), "folder": ("Ordner", "Ordners"), "house": ("Haus", "Häuser")}
DOINGS = {"open": "öffnen", "close": "schließen", "delete": "löschen", "rename": "umbenennen"}


def write_catalogue(path: Path, messages: dict[str, str]) -> None:
    """A gettext catalogue: a head, two tables of (length, offset), and the texts, each with a zero after it."""
    messages = {"": "Content-Type: text/plain; charset=UTF-8\n", **messages}
    keys = sorted(messages)
    texts = [text.encode() for text in (*keys, *(messages[key] for key in keys))]
    head, tables = 28, 16 * len(keys)
    offsets, at = [], head + tables
    for text in texts:
        offsets.append((len(text), at))
        at += len(text) + 1
    raw = struct.pack("<7I", 0x950412DE, 0, len(keys), head, head + tables // 2, 0, 0)
    path.write_bytes(raw + b"".join(struct.pack("<2I", *pair) for pair in offsets) + b"\0".join(texts) + b"\0")


@pytest.fixture
def locale(tmp_path: Path) -> Path:
    messages = {
        f"cannot {doing} the {thing} %s in window {i}": f"kann _{german[i % 2]} %s nicht {verb} in Fenster {i}"
        for thing, german in THINGS.items()
        for doing, verb in DOINGS.items()
        for i in range(8)
    }
    write_catalogue(tmp_path / "app.mo", messages | {"same": "same", "menu\x04Quit": "Jetzt beenden", "one": "einWort"})
    write_catalogue(tmp_path / "iso_1.mo", {"Germany": "Deutschland und mehr"})
    (tmp_path / "broken.mo").write_bytes(b"oops")
    return tmp_path


def test_messages_become_documents_with_the_stems_of_their_originals(locale: Path, tmp_path: Path) -> None:
    messages = languages.read_messages(locale)
    assert messages["Quit"] == "Jetzt beenden"
    assert len(messages) == 97  # neither names of countries, nor what is not translated, nor single words
    train, test = languages.build_corpora(messages)
    assert len(train) + len(test) == 96  # nothing else has a label of three messages
    assert set(train.labels.ids) == {"cannot", "window", "file", "folder", "hous", *("open", "close", "delet", "renam")}
    assert "Häuser" in " ".join(train.texts or ())
    assert not any("_" in text or "%" in text for text in train.texts or ())
    with pytest.raises(DataError, match="holds no messages"):
        languages.read_messages(tmp_path / "nowhere")


def test_a_comparison_becomes_a_page(locale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ("words", "stem:de", "chars:3-5")
    monkeypatch.setattr(languages, "SETTINGS", {name: languages.SETTINGS[name] for name in chosen})
    found = languages.compare({"locale": str(locale), "seed": 0})
    stems, words = (found["analyzers"][name] for name in ("stem:de", "words"))
    assert stems["features"] < words["features"]
    assert stems["known"] >= words["known"]
    facts = languages.BENCHMARK.facts(1)
    page = "\n".join(languages.describe({**found, "facts": facts, "machine": {"others_cores": 0.0}}))
    assert "| `stem:de` |" in page
    assert page.count("`chars:3-5`") == 2
