from __future__ import annotations

from xmtc.core.errors import DataError
from xmtc.data.document import Document, parse_jsonl


def test_documents_without_labels_do_not_look_at_them() -> None:
    lines = ['{"text": "a", "labels": 3}', '{"id": 5, "text": "b"}', '{"id": null, "text": "c"}']
    assert list(parse_jsonl(lines, DataError, labelled=False)) == [
        Document(None, "a", []),
        Document("5", "b", []),
        Document(None, "c", []),
    ]
