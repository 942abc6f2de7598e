"""What is so now is what the golden files say. Where it is meant to be otherwise: python -m tests.frozen."""

from __future__ import annotations

import pytest

from tests.frozen.__main__ import PARTS
from tests.frozen.cases import read_cases
from tests.frozen.corpus import check_corpus
from tests.frozen.doors import replies_kept
from tests.frozen.golden import AGAIN, differences, read_golden
from tests.frozen.reports import check_reports, sample
from tests.frozen.schemas import Meaning
from tests.frozen.surface import CACHED, FILE, check_surface

CHECKS = {"reports": lambda: check_reports(sample), "surface": check_surface, "bodies": check_corpus}


@pytest.mark.parametrize("part", CHECKS)
def test_nothing_has_changed(part: str) -> None:
    if found := CHECKS[part]():
        pytest.fail("\n".join([f"{len(found)} differ.", *found[:20], f"{AGAIN} {part}"]), pytrace=False)


def test_each_part_is_written_alone() -> None:
    assert PARTS.keys() == CHECKS.keys()


def test_replies_that_were_cached_are_found() -> None:
    kept = read_golden(FILE)["cached replies"]
    assert replies_kept(read_cases()[CACHED], kept) == (kept, len(kept))


DIFFERENT = [
    ({"a": 1}, {"a": 1}, []),
    ({"a": [1, {"b/c": 2}]}, {"a": [1, {"b/c": 3}]}, ["/a/1/b~1c: was 2, is 3"]),
    ({"a": 1}, {"a": True}, ["/a: was 1, is true"]),
    ({"a": 1}, {"a": 1.0}, ["/a: was 1, is 1.0"]),
    ({"a": 1}, {}, ["/a: was 1, is gone"]),
    ({}, {"a": 1}, ["/a: is new: 1"]),
    ([1], [1, 2], ["/: was [1], is [1, 2]"]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ["/: the order of the members is another"]),
]


@pytest.mark.parametrize(("kept", "now", "told"), DIFFERENT)
def test_a_difference_is_told_by_its_place(kept: object, now: object, told: list[str]) -> None:
    assert differences(kept, now) == told


def of(**definitions: object) -> str:
    return Meaning(definitions, "#/").digest({"$ref": f"#/{next(iter(definitions))}"})


LEAF = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


def test_a_schema_means_the_same_by_other_names_and_in_other_words() -> None:
    one = of(A={"anyOf": [{"$ref": "#/B"}, {"$ref": "#/A"}]}, B=LEAF)
    assert one == of(X={"anyOf": [{"$ref": "#/X"}, {"$ref": "#/Y"}], "title": "X"}, Y={**LEAF, "description": "y"})


@pytest.mark.parametrize(
    "leaf",
    [
        {**LEAF, "required": []},
        {**LEAF, "properties": {"title": {"type": "integer"}}},
        {**LEAF, "properties": {"name": {"type": "string"}}},
        {**LEAF, "additionalProperties": False},
    ],
)
def test_a_schema_that_allows_something_else_means_something_else(leaf: object) -> None:
    assert of(A={"items": {"$ref": "#/B"}}, B=LEAF) != of(A={"items": {"$ref": "#/B"}}, B=leaf)
