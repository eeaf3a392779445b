"""Small sets on disk, with words that tell the labels, and recipes that learn them in seconds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tests.tiny import build_tiny

N_LABELS = 12
Document = tuple[str, list[str]]


def documents(n: int, seed: int) -> list[Document]:
    """Texts of two labels' words each, among words that say nothing."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        labels = random.choice(N_LABELS, 2, replace=False)
        words = [f"topic{label}" for label in labels] + [f"filler{i}" for i in random.integers(0, 9, 4)]
        found.append((" ".join(words), [f"label{label}" for label in labels]))
    return found


def write_native(folder: Path, splits: dict[str, int]) -> Path:
    """Write a set in the native layout, `splits` giving each split's size."""
    folder.mkdir(parents=True)
    for seed, (split, n) in enumerate(splits.items()):
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in documents(n, seed)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def write_raw_texts(folder: Path, splits: dict[str, int]) -> Path:
    """Write a set as AttentionXML and LightXML have it."""
    folder.mkdir(parents=True)
    for seed, (split, n) in enumerate(splits.items()):
        rows = documents(n, seed)
        (folder / f"{split}_raw_texts.txt").write_text("".join(f"{text}\n" for text, _ in rows))
        (folder / f"{split}_labels.txt").write_text("".join(f"{' '.join(labels)}\n" for _, labels in rows))
    return folder


def write_recipe(folder: Path, texts: Iterable[str], epochs: int) -> Path:
    """Write tiny-cpu.toml: LightXML on a random BERT of two layers, which is saved beside it."""
    encoder = build_tiny("bert", folder / "tiny-bert", texts)
    path = folder / "tiny-cpu.toml"
    path.write_text(
        f'method = "lightxml"\n[encoder]\nname = "{encoder}"\nmax_length = 16\n'
        f'[head]\nmode = "small"\ndropout = 0.0\n[rate]\nencoder = 0.01\nhead = 0.03\n'
        f"[train]\nepochs = {epochs}\nbatch_size = 16\n"
    )
    return path


def all_texts() -> list[str]:
    """Every word of these sets."""
    return [*(f"topic{label}" for label in range(N_LABELS)), *(f"filler{i}" for i in range(9))]
