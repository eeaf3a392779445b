"""Boosted trees: trained by LightGBM from rows of features, read and evaluated without it."""

from xmtc.features.boosting.booster import BoosterConfig, check_installed, grow_trees, is_installed
from xmtc.features.boosting.trees import Trees

__all__ = ["BoosterConfig", "Trees", "check_installed", "grow_trees", "is_installed"]
