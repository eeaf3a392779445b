"""Linear models: folders of older versions."""

from __future__ import annotations

from dataclasses import replace

import xmtc
from tests.methods.test_contract import corpus

NEW = {"cluster": ("top",), "solver": ("rare", "offset"), "search": ("above", "width")}  # settings that came later
OLD = {"cluster": {"top": None}, "solver": {"rare": 0, "offset": 0}, "search": {"above": 1, "width": 100}}


def test_a_folder_of_an_older_version_has_the_settings_of_its_time(tmp_path):
    data = corpus()
    settings = {"tfidf": {"min_df": 1}, "cluster": {"size": 8}, "solver": {"C": 0.5}}
    model = xmtc.train(data, "linear", xmtc.core.config.merge(settings, OLD), out=tmp_path / "new")
    stored = dict(model.manifest.config)
    for section, keys in NEW.items():
        stored[section] = {key: value for key, value in stored[section].items() if key not in keys}
    replace(model, manifest=replace(model.manifest, config=stored)).save(tmp_path / "old")
    old, new = xmtc.load(tmp_path / "old"), xmtc.load(tmp_path / "new")
    assert old.manifest.config == stored  # as it was saved
    assert old.config == new.config
    assert (old.config.cluster.size, old.config.solver.C) == (8, 0.5)
    found, wanted = (each.rank(list(data.texts), 5) for each in (old, new))
    assert found.scores.tobytes() == wanted.scores.tobytes()
