from __future__ import annotations

import re

import pytest

from tests.app.conftest import fails, xmtc
from xmtc.catalogue import describe_recipes, list_recipes, read_recipe


def test_every_recipe_has_a_line_of_its_own() -> None:
    result = xmtc("recipes")
    assert (result.code, result.err) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in result.out.splitlines())
    assert list(lines) == list_recipes()
    assert xmtc("train", "--recipe", "list").out == result.out
    assert [row["name"] for row in xmtc("recipes", "--json").json] == list_recipes()


@pytest.mark.parametrize("facts", describe_recipes(), ids=lambda facts: facts["name"])
def test_a_line_says_what_is_true(facts: dict[str, str]) -> None:
    method, settings = read_recipe(facts["name"])
    assert 15 <= len(facts["about"]) <= 140, "begin the recipe with a comment whose first sentence says what it is for"
    if method == "linear":
        assert facts["machine"] == "CPU"
    else:
        # what a recipe says of its machine, in words, agrees with its name
        assert (facts["machine"] == "CPU") == ("CPU" in facts["about"])
        assert f"{settings['train']['epochs']} epoch" in facts["cost"]


def test_a_misplaced_setting_is_found(tmp_path) -> None:
    told = fails("train", "data", "--out", tmp_path / "m", "--set", "trees=1")
    assert re.search(r"unknown setting 'trees'\. Did you mean 'tree\.trees'\?", told)
