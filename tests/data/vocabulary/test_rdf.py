"""RDF files of strangers: refused in one line, in little time and memory, with nothing fetched or printed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from xmtc.data.vocabulary.rdf import Literal, read_pairs
from xmtc.data.vocabulary.skos import read_skos

pytest.importorskip("pyoxigraph")

RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#"'
NAME = "http://www.w3.org/2004/02/skos/core#prefLabel"


def xml(name: str, entities: str = "", declaration: str = '<?xml version="1.0"?>') -> str:
    doctype = f"<!DOCTYPE rdf:RDF [\n{entities}\n]>" if entities else ""
    concept = f'<skos:Concept rdf:about="http://x.org/a"><skos:prefLabel>{name}</skos:prefLabel></skos:Concept>'
    return f"{declaration}{doctype}<rdf:RDF {RDF}>{concept}</rdf:RDF>"


def laughs(n: int) -> str:
    """Entities of which each is ten times the one before."""
    inner = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">\n' for i in range(1, n))
    return f'<!ENTITY l0 "lol">\n{inner}'


DEEP = {
    "xml": f"<rdf:RDF {RDF}>" + "<skos:Concept><skos:broader>" * 20_000,
    "objects": '{"http://x.org/p":' * 100_000 + "1" + "}" * 100_000,
    "lists": '{"a": ' + "[" * 700 + "]" * 700 + "}",
    "triples": "<x:a> <x:b> " + "<<( <x:a> <x:b> " * 50_000 + '"x"' + " )>>" * 50_000 + " .",
}
CONTEXT = '"@id": "http://x.org/a", "http://www.w3.org/2004/02/skos/core#prefLabel": "a"'


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("v.rdf", xml("&l8;", laughs(9)), ", line 6: entity 'l4' expands to "),
        ("v.rdf", xml("&a;" * 300, f'<!ENTITY a "{"x" * 9999}">'), ": its entities expand to 2,999,700 characters"),
        (
            "v.rdf",
            xml("&a;", '<!ENTITY a SYSTEM "file:///etc/passwd">'),
            ", line 2: entity 'a' is a parameter or stored",
        ),
        ("v.rdf", xml("x", '<!ENTITY % a "x">\n%a;'), ", line 2: entity 'a' is a parameter or stored elsewhere"),
        ("v.rdf", xml("&b;", '<!ENTITY a "x">'), ", line 3: not valid RDF/XML (undefined entity)"),
        (
            "v.rdf",
            xml("x", "", '<?xml version="1.0" encoding="punycode"?>'),
            " declares the unknown encoding 'punycode'",
        ),
        ("v.rdf", xml("x", "", '<?xml version="1.0" encoding="oops"?>'), " declares the unknown encoding 'oops'"),
        ("v.rdf", DEEP["xml"], ", line 1: elements nest deeper than 1000"),
        ("v.jsonld", DEEP["objects"], ": objects and lists nest deeper than 500"),
        ("v.jsonld", DEEP["lists"], ": objects and lists nest deeper than 500"),
        (
            "v.jsonld",
            f'{{"@context": "http://127.0.0.1:9/c", {CONTEXT}}}',
            ": its @context is at 'http://127.0.0.1:9/c'",
        ),
        (
            "v.jsonld",
            f'[{{"@context": [{{}}, [["file:///etc/passwd"]]], {CONTEXT}}}]',
            ": its @context is at 'file:///etc",
        ),
        (
            "v.jsonld",
            f'{{"@context": {{"a": {{"@id": "x:a", "@context": "x:c"}}}}, {CONTEXT}}}',
            ": its @context is at 'x:c'",
        ),
        (
            "v.jsonld",
            f'{{"@context": {{"@import": "x:c"}}, {CONTEXT}}}',
            ": its @context is at 'x:c', and nothing is fetched",
        ),
        ("v.jsonld", "1" * 5000, ": not valid JSON-LD (Exceeds the limit"),
        ("v.nt", DEEP["triples"], ", line 1: quoted triples nest deeper than 100"),
        ("v.ttl", DEEP["triples"], ", line 1: quoted triples nest deeper than 100"),
    ],
)
def test_hostile_files_are_refused_quickly(
    tmp_path: Path, refusal, capfd: pytest.CaptureFixture[str], name: str, content: str, reason: str
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    started = time.process_time()
    message = refusal(read_skos, path)
    assert time.process_time() - started < 5  # hours, or a crash, without the checks
    assert message.startswith(f"{path}{reason}")
    assert len(message) < 400
    assert capfd.readouterr() == ("", "")


def test_nothing_is_printed_of_a_broken_file(tmp_path: Path, refusal, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "v.nt").write_text("<x:a> <x:b> <x:c> .\noops\n")
    assert "line 2: not valid N-Triples" in refusal(read_skos, tmp_path / "v.nt")
    assert capfd.readouterr() == ("", "")


def test_entities_that_abbreviate_are_read(tmp_path: Path) -> None:
    path = tmp_path / "v.rdf"
    path.write_text(xml("&both; &lt;", '<!ENTITY a "sugar">\n<!ENTITY both "white &a;">'), encoding="utf-8")
    assert [concept.name for concept in read_skos(path).concepts] == ["white sugar <"]


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "utf-16", "utf-8"])
def test_xml_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "v.rdf"
    content = xml("Süßstoff", "", f'<?xml version="1.0"\nencoding="{encoding}"?>\n')
    path.write_bytes(content.encode(encoding))
    assert [concept.name for concept in read_skos(path).concepts] == ["Süßstoff"]


def test_ordinary_marks_are_not_quoted_triples(tmp_path: Path) -> None:
    lines = "".join(f'<x:{i}> <{NAME}> "a << b <<" .\n' for i in range(300))
    pairs = read_pairs(tmp_path / "v.nt", lines.encode(), "nt", {NAME})
    assert pairs[NAME][299] == ("x:299", Literal("a << b <<", ""))


def test_only_predicates_asked_for_are_kept_and_odd_uris_stay(tmp_path: Path) -> None:
    turtle = f'<http://x.org/a b|c> <{NAME}> "x"@EN-gb ; <x:other> "y" . _:b <{NAME}> <relative> .'
    pairs = read_pairs(tmp_path / "v.ttl", turtle.encode(), "turtle", {NAME})
    assert set(pairs) == {NAME}
    assert pairs[NAME][0] == ("http://x.org/a b|c", Literal("x", "en-gb"))
    blank, value = pairs[NAME][1]
    assert blank.startswith("_:")
    assert value == "relative"
