"""TReaderXML on long texts: configurations 0, 1 and 6 of Table 3 on EURLEX57K, whose labels have a hierarchy."""

from __future__ import annotations

from benchmarks.ablations.study import FEW_IN_SCOPE, IN_SCOPE, Documents, Study
from benchmarks.ablations.treader import SHARED, build_arms, build_norm_arms, claim_norm, claim_table_3, claim_tail
from xmtc.core.config import merge

_WORDS, _EPOCHS = 128, 8
_LONG = merge(SHARED, {"words": {"max_words": _WORDS}, "train": {"epochs": _EPOCHS}})
_RAN = f"TReaderXML on MiniLM's word embeddings, {_WORDS} words, mean of the states, {_EPOCHS} epochs"

STUDY = Study(
    paper="treader_eurlex57k",
    title="TReaderXML (Wang et al., 2022), long texts",
    documents=Documents(set="eurlex57k", train=5_000),
    arms=(*build_arms(_LONG, 0, 1, 6), *build_norm_arms(_LONG, 6, 1, 0)),
    claims=(
        claim_table_3("teacher knowledge, long texts", "As above, on EURLEX57K.", 1, 0, ran=_RAN),
        claim_table_3("reading, long texts", "As above, on EURLEX57K.", 6, 1, 0, ran=_RAN),
        claim_norm("Table 3, with norms, long texts", _RAN),
        claim_tail("Table 4: the tail, long texts", "As above, on EURLEX57K.", _RAN, IN_SCOPE, FEW_IN_SCOPE),
    ),
)
