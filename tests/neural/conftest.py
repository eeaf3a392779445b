"""Tiny encoders of every family; without torch the whole room is skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    torch.set_num_threads(1)  # tiny networks are faster so, and exact comparisons stay exact

TEXTS = [
    "sugar imports from abroad",
    "the council regulates quotas for imports of sugar and of molasses",
    "fishing",
    "fleets of fishing boats leave the harbour before the storm and come home late",
    "",
    "boats boats boats",
]
FAMILIES = ["bert", "roberta", "xlnet", "distilbert", "deberta", "deberta-v2", "modernbert"]


class WithoutTorch(pytest.Module):
    """A file of tests that is skipped unread."""

    def collect(self) -> Any:
        pytest.skip("neural methods need torch", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    return WithoutTorch.from_parent(parent, path=module_path) if torch is None else None


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of a family's saved encoder: random weights, three layers, and a tokenizer of TEXTS' words."""
    made: dict[str, Path] = {}

    def build(family: str) -> Path:
        if family not in made:
            made[family] = _build(family, tmp_path_factory.mktemp(family))
        return made[family]

    return build


def _build(family: str, folder: Path) -> Path:
    from tests.tiny import build_tiny

    if not family.startswith("deberta"):
        return build_tiny(family, folder, TEXTS, width=16, layers=3)
    build_tiny("deberta-v2", folder, TEXTS, width=16, layers=3)  # for its tokenizer
    return save_encoder_of(
        folder,
        family,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        relative_attention=True,
        position_biased_input=False,  # as published: no table of positions
        pos_att_type=["p2c", "c2p"],
        type_vocab_size=0,
    )


def save_encoder_of(folder: Path, family: str, **settings: Any) -> Path:
    """Replace the encoder in a folder by one of these settings; its tokenizer stays."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    inner = AutoTokenizer.from_pretrained(folder)
    config = AutoConfig.for_model(family, vocab_size=len(inner), pad_token_id=inner.pad_token_id, **settings)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        AutoModel.from_config(config).save_pretrained(folder)
    return folder
