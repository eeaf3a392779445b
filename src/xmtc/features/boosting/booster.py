"""Gradient boosting: from features and targets to trees in LightGBM's text. The only module that imports LightGBM."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.errors import ConfigError
from xmtc.core.parallel import n_threads
from xmtc.core.search_space import Tunable


class BoosterConfig(Settings):
    """How the trees are trained."""

    trees: int = Field(150, ge=1, le=10_000, description="number of boosted trees")
    leaves: Annotated[int, Tunable(7, 63, log=True)] = Field(31, ge=2, le=1024, description="maximum leaves per tree")
    rate: float = Field(0.06, gt=0, le=1, description="learning rate: share of each tree's correction that is added")
    least: int = Field(20, ge=1, description="minimum pairs per leaf")


def is_installed() -> bool:
    """Return whether LightGBM is installed; only training needs it."""
    return find_spec("lightgbm") is not None


def check_installed(what: str) -> None:
    """Raise if LightGBM is not installed; `what` is the feature that needs it."""
    if not is_installed():
        raise ConfigError(f"{what} needs LightGBM to learn; install it with: pip install 'xmtc[stack]'")


def grow_trees(
    features: NDArray[np.float32],
    right: NDArray[np.bool_],
    weights: NDArray[np.floating] | None,
    names: list[str],
    config: BoosterConfig,
    seed: int,
) -> str:
    """Learn which pairs are right; the same arguments give the same text for any number of threads."""
    import lightgbm

    settings: dict[str, Any] = {
        "objective": "binary",
        "num_leaves": config.leaves,
        "learning_rate": config.rate,
        "min_data_in_leaf": config.least,
        "seed": seed % 2**31,
        "deterministic": True,
        "force_col_wise": True,  # one thread sums each feature's histogram, in the order of the pairs
        "num_threads": n_threads(),
        "verbosity": -1,
    }
    data = lightgbm.Dataset(features, right.astype(np.float32), weight=weights, feature_name=names, params=settings)
    booster = lightgbm.train(settings, data, num_boost_round=config.trees)
    text: str = booster.model_to_string()
    # the text after the trees contains the number of threads and is not needed
    return text.partition("\nend of trees")[0] + "\nend of trees\n"
