from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.data.document import Document
from xmtc.data.gather import assemble, gather


def test_gathered_documents_equal_an_assembled_corpus() -> None:
    rng = np.random.default_rng(0)
    lists = [[f"l{i}" for i in rng.integers(20, size=rng.integers(1, 5))] for _ in range(100)]  # with repetitions
    texts = [f"ü {i}" for i in range(100)]
    concepts = [Concept("l3", "three", parents=("top",)), Concept("other")]
    corpus = gather((Document(None, *pair) for pair in zip(texts, lists, strict=True)), "here", concepts)
    expected = Corpus.from_lists(texts, lists, concepts=concepts)
    assert corpus.fingerprint() == expected.fingerprint()
    np.testing.assert_array_equal(corpus.labels.counts, expected.labels.counts)


def test_assembled_codes_name_the_vocabulary() -> None:
    X = sp.csr_matrix(np.eye(2, dtype=np.float32))
    corpus = assemble("here", ["z", "a"], np.array([0, 1, 1, 0], np.int32), np.array([0, 3, 4]), X=X, kept={})
    assert corpus.labels.ids == ("a", "z")
    assert corpus.Y.toarray().tolist() == [[1, 1], [0, 1]]
