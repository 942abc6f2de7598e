"""Arguments against tool schemas: tables of cases, the packaged test suite, hostile schemas, laws."""

from __future__ import annotations

import gzip
import json
import re
import socket
import string
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from service.core.schemas import MAX_VIOLATIONS, SchemaProblem, Validator, build_validator
from service.core.work_limits import LIMITS, Meter

DATA = Path(__file__).parents[1] / "data" / "schemas"


def table(name):
    return yaml.safe_load((DATA / f"{name}.yaml").read_text("utf-8"))


def rows_of(rows):
    return [pytest.param(row, id=str(row["name"])) for row in rows]


def brief(violations):
    return [[v.keyword, v.path] for v in violations]


def compiles(schema, **options):
    try:
        return build_validator(schema, **options)
    except SchemaProblem as problem:
        return problem


CASES = [
    {**case, "instance": instance, "expected": expected}
    for case in table("cases")
    for instance, expected in case["tests"]
]


@pytest.mark.parametrize("case", rows_of(CASES))
def test_case(case):
    found = build_validator(case["schema"], **case.get("options", {})).list_violations(case["instance"])
    assert brief(found) == case["expected"]
    assert all(v.message and len(v.message) <= 300 for v in found)


@pytest.mark.parametrize("case", rows_of(table("problems")))
def test_problem(case):
    with pytest.raises(SchemaProblem) as caught:
        build_validator(case["schema"], **case.get("options", {}))
    assert caught.value.path == case["path"]
    assert [word for word in case["says"] if word not in caught.value.message] == []


@pytest.mark.parametrize("case", rows_of(table("surfaces")))
def test_surface(case):
    found = build_validator(case["schema"])
    instance, undeclared = case["undeclared"]
    declared = case["properties"]
    assert found.properties == (declared if declared is None else frozenset(declared))
    assert found.required == frozenset(case.get("required", ()))
    assert dict(found.defaults) == case.get("defaults", {})
    assert list(found.find_undeclared(instance)) == undeclared


@pytest.mark.parametrize(
    ("schema", "instance", "message"),
    [*table("messages"), ({"type": "string"}, 10**400, "expected string, found an integer of about 401 digits")],
)
def test_messages_name_what_was_expected_and_found(schema, instance, message):
    (found,) = build_validator(schema).list_violations(instance)
    assert found.message.startswith(message)


@pytest.mark.parametrize(("wrong", "rest"), [(99, None), (100, None), (101, "and 1 more"), (250, "and 150 more")])
def test_at_most_a_hundred_violations_and_one_that_counts_the_rest(wrong, rest):
    found = build_validator({"items": {"type": "string"}}).list_violations(list(range(wrong)))
    assert len(found) == min(wrong, MAX_VIOLATIONS) + (rest is not None)
    counted = [(one.keyword, one.message) for one in found if one.path == ""]
    assert counted == ([] if rest is None else [("schema", rest)])


@pytest.mark.parametrize(("depth", "keywords"), [(63, []), (64, []), (65, ["depth"]), (50_000, ["depth"])])
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["array", "object"])
def test_depth_of_the_instance(depth, keywords, wrap):
    value = "leaf"
    for _ in range(depth):
        value = wrap(value)
    nested = {"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}, "type": ["array", "object", "string"]}
    assert [v.keyword for v in build_validator(True).list_violations(value)] == keywords
    assert [v.keyword for v in build_validator(nested).list_violations(value)] == keywords
    while isinstance(value, list | dict):  # freed from outside in: the interpreter frees by recursion
        value = next(iter(value.values() if isinstance(value, dict) else value))


def nest(levels, schema):
    for _ in range(levels):
        schema = {"not": schema}
    return schema


SIZES = [(nest(31, {}), True), (nest(32, {}), False), (nest(2_999, {}), False)]
SIZES += [({"description": "d" * length}, length < 64_000) for length in (63_000, 64_000, 1_000_000)]


@pytest.mark.parametrize(("schema", "usable"), SIZES)
def test_depth_and_size_of_the_schema(schema, usable):
    assert isinstance(compiles(schema), Validator) == usable


@pytest.mark.parametrize("schema", [{"const": float("nan")}, {"a": object()}, {"a": "\ud800"}, {"const": 1e999}])
def test_what_is_not_json_is_no_schema(schema):
    with pytest.raises(SchemaProblem, match="not made of JSON"):
        build_validator(schema)


def test_equal_schemas_share_a_validator_and_types_are_told_apart():
    assert build_validator({"const": 1}) is build_validator({"const": 1})
    assert not build_validator({"const": 1}).list_violations(1)
    assert build_validator({"const": True}).list_violations(1)
    assert build_validator({"format": "date"}) is not build_validator({"format": "date"}, formats=False)


SURROGATES = [
    ({"minLength": 2}, "\ud800", ""),
    ({"properties": {"a": {"items": {"pattern": "^.$"}}}}, {"a": ["x", "\udfff"]}, "/a/1"),
    ({"required": ["z"], "properties": {"a": {"pattern": "x"}}}, {"a": "\udfff"}, "/a"),
    ({"properties": {"a": {}}, "additionalProperties": False}, {"\ud800": 1}, ""),
]


@pytest.mark.parametrize(("schema", "instance", "path"), SURROGATES)
def test_lone_surrogates(schema, instance, path):
    check = build_validator(schema)
    assert brief(check.list_violations(instance)) == [["encoding", path]]
    check.find_undeclared(instance)


# the packaged test suite


@pytest.mark.shared_data
def test_json_schema_test_suite(shared_data):
    suite = json.loads((shared_data / "hostile" / "json_schema_2020_12.json").read_text("utf-8"))
    groups = [group for groups in suite["files"].values() for group in groups]
    refused = {g["description"] for g in groups if isinstance(compiles(g["schema"]), SchemaProblem)}
    assert refused == set(table("remote"))
    checked = [(g, test) for g in groups if g["description"] not in refused for test in g["tests"]]
    assert len(checked) > 80
    wrong = [
        (group["description"], test["description"])
        for group, test in checked
        if (build_validator(group["schema"]).list_violations(test["data"]) == ()) != test["valid"]
    ]
    assert wrong == []


@pytest.mark.shared_data
def test_every_bfcl_function_compiles(shared_data):
    lines = gzip.decompress((shared_data / "bfcl" / "questions.jsonl.gz").read_bytes()).splitlines()
    schemas = [f["parameters"] for line in lines for f in json.loads(line)["functions"]]
    assert len(schemas) > 1_000
    assert [problem for problem in map(compiles, schemas) if isinstance(problem, SchemaProblem)] == []


# hostile schemas


@pytest.fixture
def listener():
    """A port that notes whether anyone connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        yield server


def connected(server):
    try:
        server.accept()[0].close()
    except TimeoutError:
        return False
    return True


REACHES = [
    '{{"$ref": "{uri}"}}',
    '{{"properties": {{"a": {{"$ref": "{uri}#/x"}}}}}}',
    '{{"$id": "{uri}", "$ref": "other"}}',
    '{{"$id": "{uri}/a/", "items": {{"$id": "b/", "$ref": "c.json"}}}}',
    '{{"$dynamicRef": "{uri}#a"}}',
    '{{"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "{uri}"}}',
    '{{"$schema": "{uri}"}}',
    '{{"items": {{"$id": "x", "$schema": "{uri}"}}}}',
    '{{"$schema": "http://json-schema.org/draft-04/schema#", "id": "{uri}", "$ref": "x"}}',
]


@pytest.mark.parametrize("template", REACHES)
@pytest.mark.parametrize("dialect", ["auto", "draft4", "draft7", "draft2020-12", "openapi3.0"])
def test_nothing_is_ever_fetched(template, dialect, listener, tmp_path):
    # The engine does its input and output outside Python, where no audit hook sees it: watch the far end instead.
    other = tmp_path / "other"
    other.write_text('{"type": "string"}')
    here = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for uri in (here, f"{here}/x.json", other.as_uri()):
        found = compiles(json.loads(template.format(uri=uri)), dialect=dialect)
        if isinstance(found, Validator):
            assert found.list_violations(1) == ()  # as a string it would have been fetched and refused this
    assert not connected(listener)


def fan(levels, last, keyword="allOf"):
    steps = {f"a{i}": {keyword: [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(levels)}
    return {"$defs": {**steps, f"a{levels}": last}, "$ref": "#/$defs/a0"}


def chain(length, last):
    steps = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(length)}
    return {"$defs": {**steps, f"a{length}": last}, "$ref": "#/$defs/a0"}


def deep(levels, leaf):
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


AGAIN = {"type": "object", "properties": {"a": {"$ref": "#"}}}
# Each of these ran for minutes, took all memory or overflowed the stack when it went to the engine unguarded.
EXPENSIVE = [
    (fan(30, {"type": "string"}), "x"),
    (fan(30, {"type": "string"}), 3),
    (fan(300, {"type": "string"}, "anyOf"), 3),
    (fan(16, AGAIN), deep(3, {})),
    (fan(4, AGAIN), deep(30, {})),
    (chain(500, AGAIN), deep(60, 3)),
    ({"items": {"allOf": [{"minimum": i} for i in range(3000)]}}, [5000] * 20_000),
    ({"items": {"enum": [{"a": i} for i in range(3000)]}}, [{"a": 2999}] * 10_000),
    ({"pattern": "(?:a{1,60}){1,60}b"}, "a" * 100_000),
    ({"patternProperties": {"(?:a{1,60}){1,60}b": {}}}, {"a" * 100_000: 1}),
]


@pytest.mark.parametrize(("schema", "instance"), EXPENSIVE)
def test_too_much_work_is_refused_not_begun(schema, instance):
    with pytest.raises(SchemaProblem, match="too much work"):
        build_validator(schema).list_violations(instance)


UNLISTED = [
    (fan(20, {"type": "string"}), 3),
    (fan(20, {"type": "string"}, "anyOf"), 3),
    ({**AGAIN, "allOf": [{"properties": {"a": {"$ref": "#"}}}]}, deep(18, 3)),
    ({"items": {"allOf": [{"minimum": i} for i in range(1000)]}}, [-1] * 100),
]


@pytest.mark.parametrize(("schema", "instance"), UNLISTED)
def test_a_verdict_within_reach_without_a_list_of_all_errors(schema, instance):
    assert brief(build_validator(schema).list_violations(instance)) == [["schema", ""]]


BRANCHES = {"anyOf": [{"const": i} for i in range(1000)]}


@pytest.mark.parametrize("given", [300, 10**9])
def test_a_list_is_paid_for_before_it_is_made(given):
    meter = Meter({**LIMITS, "comparisons": given})
    found = build_validator(BRANCHES).list_violations("x", meter)
    assert len(found) == 1
    assert ("too large to list" in found[0].message) == (given == 300)
    assert meter.spent["comparisons"] >= (0 if given == 300 else 1000)


def test_recursion_as_tools_use_it_is_listed():
    kids = {"type": "array", "items": {"$ref": "#/$defs/node"}}
    left = {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}
    node = {"required": ["v"], "properties": {"v": {"type": "integer"}, "left": left, "kids": kids}}
    tree = {"v": "x"}
    for _ in range(4):
        tree = {"v": 1, "kids": [tree, tree], "left": None}
    found = build_validator({"$defs": {"node": node}, "$ref": "#/$defs/node"}).list_violations(tree)
    assert len(found) == 2**4
    assert brief(found)[0] == ["type", "/kids/0/kids/0/kids/0/kids/0/v"]


REDOS = [
    r"^(a+)+$", r"^(a|a)*$", r"^(a|aa)+$", r"(a*)*$", r"^(.*)*$", r"^(\w+\s?)*$", r"(.*a){20}$", r"^(([a-z])+.)+[A-Z]$",
    r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}$", r"(a?){50}a{50}$", r"^(a*)*b$", r"(x+x+)+y",
    r"^\s+|\s+$", r"(\d+)*-", r"^(?:a|b|ab)*c$", r"^(a{1,20}){1,20}$", r"(?:.{1,10}){1,3}b", r"(.*.*)*b", r"^[^\s]+\s+$",
    r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", REDOS)
@pytest.mark.parametrize("text", ["a" * 20_000 + "!", "ab" * 10_000, " " * 20_000 + "x", "1" * 20_000])
def test_patterns_that_take_exponential_time_elsewhere(pattern, text):
    assert brief(build_validator({"pattern": pattern}).list_violations(text)) in ([], [["pattern", ""]])


def test_patterns_share_a_limit():
    with pytest.raises(SchemaProblem, match="at most 64"):
        build_validator({"properties": {f"p{i}": {"pattern": "a"} for i in range(65)}})
    with pytest.raises(SchemaProblem, match="too large"):
        build_validator({"properties": {f"p{i}": {"pattern": f"^.{{1,{200 + i}}}$"} for i in range(20)}})
    assert build_validator({"pattern": "^.{1,255}$"}).list_violations("x" * 200) == ()


# laws

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=5)
ANYTHING = st.recursive(
    SCALARS | ANY_TEXT | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=12,
)
LEAVES = st.one_of(
    st.booleans(),
    st.builds(
        dict, type=st.sampled_from(["string", "integer", "number", "object", "array", "null", "boolean", "dict"])
    ),
    st.builds(
        dict, enum=st.lists(VALUES, min_size=1, max_size=3, unique_by=lambda value: json.dumps(value, sort_keys=True))
    ),
    st.builds(dict, minimum=st.integers(-5, 5)),
    st.builds(dict, minLength=st.integers(0, 3), pattern=st.sampled_from(["^a", "b$"])),
    st.builds(dict, required=st.lists(st.sampled_from("abc"), unique=True)),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(dict, properties=st.dictionaries(st.sampled_from("abc"), inner), additionalProperties=st.booleans()),
        st.builds(dict, items=inner, maxItems=st.integers(0, 2)),
        st.builds(dict, anyOf=st.lists(inner, min_size=1, max_size=3)),
        st.builds(dict, oneOf=st.lists(inner, min_size=1, max_size=3)),
        st.builds(dict, allOf=st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=6,
)


@given(SCHEMAS, ANYTHING)
def test_never_raises_and_every_violation_has_a_place(schema, instance):
    check = build_validator(schema)
    check.find_undeclared(instance)
    for violation in check.list_violations(instance):
        assert re.fullmatch(r"(/([^~/]|~[01])*)*", violation.path, re.DOTALL)
        assert len(violation.message) <= 300


def reversed_keys(value):
    if isinstance(value, dict):
        return {key: reversed_keys(inner) for key, inner in reversed(value.items())}
    return [reversed_keys(inner) for inner in value] if isinstance(value, list) else value


@given(SCHEMAS, VALUES)
def test_the_order_of_keys_changes_nothing(schema, instance):
    found = build_validator(schema).list_violations(instance)
    assert build_validator(schema).list_violations(reversed_keys(instance)) == found
    assert brief(build_validator(reversed_keys(schema)).list_violations(instance)) == brief(found)


@given(
    st.dictionaries(st.text(string.printable, max_size=4), SCALARS, max_size=5),
    st.sets(st.text(string.printable, max_size=4)),
)
def test_what_is_undeclared_would_break_the_closed_schema(instance, declared):
    properties = {name: {} for name in sorted(declared)}
    undeclared = build_validator({"properties": properties}).find_undeclared(instance)
    closed = build_validator({"properties": properties, "additionalProperties": False}).list_violations(instance)
    assert {v.path for v in closed} == {"/" + name.replace("~", "~0").replace("/", "~1") for name in undeclared}
