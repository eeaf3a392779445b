from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

from xmtc.core.labels import Concept
from xmtc.data import DataWarning, read_corpus
from xmtc.data.vocabulary import Described, find_vocabulary, read_vocabulary, skos
from xmtc.data.vocabulary.skos import read_skos

ox = pytest.importorskip("pyoxigraph")

HEAD = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix : <http://x.org/> .
"""
VOCABULARY = """
:scheme a skos:ConceptScheme ; skos:prefLabel "The scheme"@en .
:sugar a skos:Concept ; skos:prefLabel "sugar"@en, "Zucker"@de, "sucre"@fr ;
    skos:altLabel "white sugar"@en, "beet sugar"@en-GB, "Rohrzucker"@de, "C12H22O11" ;
    skos:scopeNote "A note."@en ; skos:definition "Süß."@de, "Sweet."@en ; skos:notation "4313" ;
    skos:broader :food, :trade, :elsewhere .
:food a skos:Concept ; skos:prefLabel "food"@en-US ; skos:narrower :fish ; skos:scopeNote "Eaten." .
:fish a skos:Concept ; skos:prefLabel "Fisch"@de ; skos:broader :old .
:trade a skos:Concept ; xl:prefLabel [ xl:literalForm "trade"@en ] ;
    skos:definition [ rdf:value "Bought\\n and sold."@en ] .
:old a skos:Concept ; skos:prefLabel "old"@en ; owl:deprecated true ; skos:broader :food .
"""
BASE = "http://x.org/"


def write(path: Path, turtle: str) -> Path:
    path.write_text(HEAD + turtle, encoding="utf-8")
    return path


def by_name(described: Described) -> dict[str, Concept]:
    return {concept.id.removeprefix(BASE): concept for concept in described.concepts}


def test_names_notes_and_parents(tmp_path: Path) -> None:
    described = read_skos(write(tmp_path / "v.ttl", VOCABULARY))
    found = by_name(described)
    assert list(found) == ["fish", "food", "old", "sugar", "trade"]
    assert found["sugar"] == Concept(
        f"{BASE}sugar",
        "sugar",
        ("C12H22O11", "beet sugar", "white sugar"),
        "Sweet.",
        (f"{BASE}elsewhere", f"{BASE}food", f"{BASE}trade"),
        (("de", "Zucker"), ("en", "sugar"), ("fr", "sucre")),
    )
    assert found["food"] == Concept(f"{BASE}food", "food", (), "Eaten.", (), (("en-us", "food"),))
    # its retired parent is left out
    assert found["fish"] == Concept(f"{BASE}fish", "Fisch", (), "", (f"{BASE}food",), (("de", "Fisch"),))
    assert found["trade"] == Concept(f"{BASE}trade", "trade", (), "Bought and sold.", (), (("en", "trade"),))
    assert list(described.retired) == [f"{BASE}old"]
    assert (described.undescribed, described.circles) == (1, 0)


def test_languages(tmp_path: Path, refusal) -> None:
    path = write(tmp_path / "v.ttl", VOCABULARY)
    german = by_name(read_skos(path, "DE"))
    assert german["sugar"].name == "Zucker"
    assert german["sugar"].alternatives == ("C12H22O11", "Rohrzucker")
    assert german["sugar"].description == "Süß."
    assert german["food"].name == "food"  # what there is
    assert by_name(read_skos(path, "en-us"))["food"].name == "food"
    assert refusal(read_skos, path, "fi") == f"{path} names nothing in 'fi'; it has de, en, en-us, fr."
    path = write(tmp_path / "w.ttl", ':a a skos:Concept ; skos:prefLabel "x"@sv, "y"@fi . :b skos:prefLabel "z"@fi .')
    assert by_name(read_skos(path))["a"].name == "y"  # b is no concept: both name one
    path = write(tmp_path / "x.ttl", ':a skos:prefLabel "x"@sv, "y"@fi . :b skos:prefLabel "z"@fi .')
    assert [concept.name for concept in read_skos(path).concepts] == ["y", "z"]  # no types: what has a name
    path = write(tmp_path / "y.ttl", ":a a skos:Concept .")
    assert read_skos(path).concepts == [Concept(f"{BASE}a")]
    assert "its names have no language" in refusal(read_skos, path, "en")


@pytest.mark.parametrize(("ending", "format"), [(".rdf", "RDF_XML"), (".nt", "N_TRIPLES"), (".jsonld", "JSON_LD")])
@pytest.mark.parametrize("packed", [False, True])
def test_formats_tell_the_same(tmp_path: Path, ending: str, format: str, packed: bool) -> None:
    source = write(tmp_path / "v.ttl", VOCABULARY)
    triples = (quad.triple for quad in ox.parse(source.read_bytes(), ox.RdfFormat.TURTLE))
    raw = ox.serialize(triples, format=getattr(ox.RdfFormat, format))
    path = tmp_path / f"v{ending}{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    assert read_vocabulary(path) == read_vocabulary(source)


def test_circles_lose_one_link_and_are_told(tmp_path: Path) -> None:
    turtle = "".join(f':{a} a skos:Concept ; skos:broader :{b} . :{a} skos:prefLabel "{a}" .' for a, b in _CIRCLES)
    described = read_skos(write(tmp_path / "labels.ttl", turtle))
    parents = {name: [parent.removeprefix(BASE) for parent in c.parents] for name, c in by_name(described).items()}
    assert parents == {"a": ["b"], "b": ["c"], "c": [], "d": ["a"], "self": [], "e": ["d", "f"], "f": []}
    assert described.circles == 3
    (tmp_path / "train.tsv").write_text(f"t\t<{BASE}e>\n")
    with pytest.warns(DataWarning, match="kept concepts in a circle, without the parent that closed it: 3$"):
        assert read_corpus(tmp_path).labels.names[0] == "e"


_CIRCLES = [*zip("abcdeef", "bcaadfe", strict=True), ("self", "self")]


def test_many_parents_on_a_long_chain(tmp_path: Path) -> None:
    chain = "".join(f":c{i} a skos:Concept ; skos:broader :c{i + 1}, :c{i + 2} .\n" for i in range(3000))
    described = read_skos(write(tmp_path / "v.ttl", chain))
    assert (len(described.concepts), described.circles) == (3000, 0)
    assert by_name(described)["c7"].parents == (f"{BASE}c8", f"{BASE}c9")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("v.ttl", HEAD + ":a a ;", ", line 6: not valid Turtle (; is not a valid RDF object)"),
        ("v.ttl", "<a> <b> <c> .", " holds no skos:Concept"),
        ("v.ttl", "", " holds no skos:Concept"),
        (
            "v.nt",
            "<x:a> <x:b> <x:c> .\n<x:a> oops .\n",
            ", line 2: not valid N-Triples (The predicate of a triple must be an IRI)",
        ),
        ("v.rdf", "<a>\n<b></a>", ", line 2: not valid RDF/XML (mismatched tag)"),
        ("v.rdf", "<html/>", ": not valid RDF/XML ("),
        ("v.jsonld", '{"a":\n oops}', ", line 2: not valid JSON-LD (Expecting value)"),
        ("v.jsonld", '{"@graph": [{"@context": ["http://x.org/c"]}]}', ": its @context is at 'http://x.org/c'"),
        ("v.ttl", b"# \xff", ", line 1: byte 0xff is not UTF-8"),
        ("v.ttl.gz", b"\x1f\x8boops", ", line 1: the gzip file is cut short"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, refusal, name: str, content: str | bytes, reason: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert refusal(read_skos, path).startswith(f"{path}{reason}")


def test_the_second_reading_needs_no_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    path = write(tmp_path / "v.ttl", VOCABULARY)
    first = read_skos(path)
    assert len(list((tmp_path / "cache" / "skos").iterdir())) == 1
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    (tmp_path / "moved.ttl").write_bytes(path.read_bytes())
    assert read_skos(tmp_path / "moved.ttl") == first
    write(path, VOCABULARY.replace("Zucker", "Zuckerl"))
    with pytest.raises(Exception, match=r"needs pyoxigraph; install it with: pip install 'xmtc\[skos\]'"):
        read_skos(path)
    assert not any(b"pickle" in file.read_bytes()[:64] for file in (tmp_path / "cache").rglob("*") if file.is_file())


def test_labels_may_be_notations_or_the_ends_of_uris(tmp_path: Path) -> None:
    write(tmp_path / "labels.ttl", VOCABULARY)
    for label in (f"{BASE}sugar", "4313", "sugar"):
        (tmp_path / "train.jsonl").write_text(f'{{"text": "t", "labels": ["{label}", "unknown"]}}\n')
        with pytest.warns(DataWarning, match="parents that the labels file does not describe: 1$"):
            labels = read_corpus(tmp_path).labels
        place = labels.ids.index(label)
        assert labels.names[place] == "sugar"
        assert "food" in [labels.names[parent] for parent in labels.parents[place]]
        assert "old" not in labels.names


def test_retired_concepts_stay_where_a_document_has_them(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text(f"text,labels\nt,{BASE}old\n")
    described = read_skos(write(tmp_path / "labels.ttl", VOCABULARY))
    with pytest.warns(DataWarning):
        labels = read_corpus(tmp_path).labels
    assert labels.names[0] == "old"
    assert len(labels) == len(described.concepts) + 1  # and the parent that is not described


def test_which_vocabulary_counts(tmp_path: Path, refusal) -> None:
    assert find_vocabulary(tmp_path) is None
    other = write(tmp_path / "thesaurus.ttl", VOCABULARY)
    assert find_vocabulary(tmp_path) == other
    assert find_vocabulary(tmp_path, any_name=False) is None
    (tmp_path / "more.rdf.gz").touch()
    assert "holds several vocabularies (more.rdf.gz, thesaurus.ttl)" in refusal(find_vocabulary, tmp_path)
    (tmp_path / "labels.nt").touch()
    assert find_vocabulary(tmp_path) == tmp_path / "labels.nt"
    (tmp_path / "labels.jsonl").touch()
    assert find_vocabulary(tmp_path) == tmp_path / "labels.jsonl"


def test_a_vocabulary_from_elsewhere(tmp_path: Path, refusal) -> None:
    path = write(tmp_path / "v.ttl", VOCABULARY)
    (tmp_path / "train_raw_texts.txt").write_text("t\n")
    (tmp_path / "train_labels.txt").write_text("sugar\n")
    (tmp_path / "corpus.csv").write_text("text,labels\nt,sugar\n")
    for data in (tmp_path, tmp_path / "corpus.csv"):
        with pytest.warns(DataWarning):
            assert read_corpus(data, labels=path, language="de").labels.names[0] == "Zucker"
    message = refusal(lambda: read_corpus(tmp_path / "corpus.csv", language="de"))
    assert "does not exist" in refusal(read_vocabulary, tmp_path / "none")
    assert "has no vocabulary, so there is no language to choose" in message
    assert "unknown format" in refusal(read_vocabulary, tmp_path / "corpus.csv")
    (tmp_path / "l.jsonl").write_text('{"label": "sugar"}\n')
    assert "leave the language out" in refusal(read_vocabulary, tmp_path / "l.jsonl", "de")
    assert "cannot read" in refusal(read_vocabulary, tmp_path / "none.ttl")
    assert "is a vocabulary, and holds no documents" in refusal(read_corpus, path)


def test_every_format_is_named_in_the_docstring() -> None:
    assert all(ending in (skos.__doc__ or "") for ending in skos.FORMATS)
