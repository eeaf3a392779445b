"""Check that a change of the code leaves every trained weight as it was, and that older model folders still load.

    python -m tests.same_weights save FOLDER       before the change: train one small model per case into FOLDER
    python -m tests.same_weights compare FOLDER    after it: train them again and compare every file with FOLDER's

Every case of the contract battery is trained on its corpus with a fixed seed and one thread; so are a linear model on
features, an updated one, LightXML's static negatives, an ensemble and a calibrated model. `compare` also loads each
older folder and compares its ranking with the new model's. It prints one line per difference and exits with 1 if any.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import scipy.sparse as sp

import xmtc
from tests.methods.test_contract import METHODS, TINY, briefly, corpus, train
from tests.tiny import build_tiny
from xmtc.core.config import merge

CASES = METHODS | {
    f"lightxml (bert, {negatives})": merge(
        TINY, {"encoder": {"name": "bert"}, "head": {"mode": "large", "negatives": negatives}}
    )
    for negatives in ("static", "static-own")
}


def train_all(folder: Path) -> Iterator[str]:
    """Train every case into a subfolder of `folder`; yield the subfolders' names."""
    os.environ["XMTC_CACHE"] = str(Path("cache").absolute())
    for case, config in CASES.items():
        name = "".join(letter if letter.isalnum() else "-" for letter in case).strip("-")
        if "encoder" in config:
            import torch

            torch.set_num_threads(1)
            # the folder's name is a setting, and settings are compared too: relative, so that it is the same each time
            encoder = build_tiny(
                config["encoder"]["name"], Path("encoders") / config["encoder"]["name"], corpus().texts
            )
            config = merge(config, {"encoder": {"name": str(encoder)}})
        train(corpus(), case.split(" ")[0], briefly(config), seed=5, out=folder / name)
        yield name
    settings = {"tfidf": {"min_df": 1}, "cluster": {"size": 8}}
    random = np.random.default_rng(0)
    features = sp.random(66, 40, 0.2, format="csr", dtype=np.float32, random_state=random)
    texts = corpus()
    xmtc.train(
        xmtc.Corpus(texts.ids, None, features, texts.Y, texts.labels), "linear", settings, out=folder / "features"
    )
    yield "features"
    first = xmtc.train(texts.take(np.arange(40)), "linear", settings, seed=5)
    news = xmtc.Corpus.from_lists(["something new", "new again", "new topic3word1"], [["N1"], ["N1", "N2"], ["L03"]])
    updated = xmtc.update(
        first, news, base=texts.take(np.arange(40)), retire=["L05"], budget=1.0, out=folder / "updated"
    )
    yield "updated"
    xmtc.ensemble([first, updated], "rank", [1.0, 2.0], out=folder / "ensemble")
    yield "ensemble"
    xmtc.calibrate(first, texts.take(np.arange(40, 66)), out=folder / "calibrated")
    yield "calibrated"


def content(path: Path) -> Any:
    """What is compared of a file: settings as values, all else by its bytes."""
    if path.name == "model.json":
        known = json.loads(path.read_bytes())
        del known["sha256"]
        known["files"] = sorted(known["files"])  # their sha256 are compared file by file
        return known
    return hashlib.sha256(path.read_bytes()).hexdigest()


def compare(old: Path, new: Path, name: str) -> list[str]:
    """Name every file in which two model folders differ, and every ranking."""
    files = {path.relative_to(folder / name) for folder in (old, new) for path in (folder / name).rglob("*")}
    wrong = []
    for file in sorted(files):
        one, two = old / name / file, new / name / file
        if not (one.exists() and two.exists()):
            wrong.append(f"{name}: {file} is only in the {'old' if one.exists() else 'new'} folder")
        elif one.is_file() and content(one) != content(two):
            wrong.append(f"{name}: {file} differs")
    documents: Any = list(corpus().texts)
    if name == "features":
        documents = sp.random(66, 40, 0.2, format="csr", dtype=np.float32, random_state=np.random.default_rng(0))
    first, second = (xmtc.load(folder / name).rank(documents, 7) for folder in (old, new))
    if first.labels.tobytes() != second.labels.tobytes() or first.scores.tobytes() != second.scores.tobytes():
        wrong.append(f"{name}: the rankings differ")
    return wrong


def main() -> int:
    """Run one of the two commands of the module's docstring."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("save", "compare"):
        print(__doc__)
        return 2
    old = Path(sys.argv[2]).absolute()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        if sys.argv[1] == "save":
            print(f"saved {len(list(train_all(old)))} models in {old}")
            return 0
        wrong, n_models = [], 0
        for name in train_all(Path(scratch) / "new"):
            wrong += compare(old, Path(scratch) / "new", name)
            n_models += 1
    print("\n".join(wrong) or f"{n_models} models: every file and every ranking is the same")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
