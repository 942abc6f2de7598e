"""The one parser for bodies: what it takes unchanged, what it refuses, and that it names the place."""

from __future__ import annotations

import base64
import gzip
import json
import math
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.errors import MalformedError, TooLargeError
from service.reading.strict_json import Limits, parse_strictly
from tests.tables import DATA, read_yaml

TABLES = read_yaml(DATA / "reading" / "bodies.yaml")

LIMITS = Limits()
SMALL = Limits(max_bytes=80, max_depth=3, max_digits=5, max_string=6, max_items=7)


def refusal(data, limits=LIMITS):
    with pytest.raises((MalformedError, TooLargeError)) as caught:
        parse_strictly(data, limits)
    (problem,) = caught.value.problems
    return type(caught.value), problem.path, problem.message


def same(one, other):
    """Equal to the last bit and in the order of keys: 1 is not 1.0, 0.0 is not -0.0."""
    if isinstance(one, float):
        return isinstance(other, float) and struct.pack("d", one) == struct.pack("d", other)
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


TAKEN = [
    ("0." + "0" * 400, 0.0),
    ('"\\ud83d\\ude00 \\u00e9 \u2028"', "\U0001f600 \u00e9 \u2028"),
    ('"1e999 and ' + "1234567890" * 8 + '"', "1e999 and " + "1234567890" * 8),
]


@pytest.mark.parametrize(("text", "value"), [*TABLES["taken"], *TAKEN], ids=lambda one: ascii(one)[:40])
def test_taken_as_it_is(text, value):
    assert same(parse_strictly(text.encode(), LIMITS), value)


# Bytes that no table of text holds, words of the message.
UNREADABLE = [
    (b"\xef\xbb\xbf{}", ["byte order mark"]),
    ("{}".encode("utf-16"), ["UTF-8", "UTF-16"]),
    ("{}".encode("utf-16-le"), ["UTF-16"]),
    ("{}".encode("utf-16-be"), ["UTF-16"]),
    ("1".encode("utf-32"), ["UTF-32"]),
    (b'{"a": "\xff"}', ["line 1", "unicode"]),
    (b'"\xed\xa0\x80"', ["line 1, column 2"]),
    (b'{"a": "\\ud800"}', ["line 1"]),
    (b'"\\ud800\\ud800"', ["line 1"]),
    (b'"\\ud800x"', ["line 1"]),
    (b'{"' + b"k" * 5000 + b'": 1, "' + b"k" * 5000 + b'": 1}', ["twice"]),
    (b'"\x00"', ["UTF-16"]),
    (b'["abc", "\x00"]', ["control character"]),
]
LONG = [
    (b"[" + b"9" * 400 + b".5]", MalformedError, "/0", ["too large for a float"]),
    (b"[0." + b"0" * 400 + b"1]", MalformedError, "/0", ["too small"]),
    (b"[" * 100_000, TooLargeError, "", ["more than 64 levels"]),
    (b'{"a":' * 100_000, TooLargeError, "", ["more than 64 levels"]),
    (b"1" * 5_000, TooLargeError, "", ["more than 64 digits"]),
    (b" " * 4_000_001, TooLargeError, "", ["4000001 bytes"]),
]
ERRORS = {"MalformedError": MalformedError, "TooLargeError": TooLargeError}
REFUSED = [
    *[(text.encode(), ERRORS[error], *rest) for text, error, *rest in TABLES["refused"]],
    *[(data, MalformedError, "", words) for data, words in UNREADABLE],
    *LONG,
]


@pytest.mark.parametrize(("data", "error", "path", "words"), REFUSED, ids=[str(data[:30]) for data, *_ in REFUSED])
def test_refused(data, error, path, words):
    kind, where, message = refusal(data)
    assert (kind, where) == (error, path)
    assert [word for word in words if word not in message] == []
    assert len(message) <= 400


@pytest.mark.parametrize("depth", [65, 66, 197, 198])
def test_depth_beyond_the_limit_names_the_first_place(depth):
    assert refusal(b"[" * depth + b"]" * depth) == (TooLargeError, "/0" * 64, "nested in more than 64 levels")
    mixed = b'{"k":[' * (depth // 2 + 1) + b"1" + b"]}" * (depth // 2 + 1)
    assert refusal(mixed)[:2] == (TooLargeError, "/k/0" * 32)


# Limits of SMALL: the last that is taken, the first that is not, and where.
EDGES = [
    (b'"' + b"x" * 6 + b'"' + b" " * 72, b" " * 81, "", "81 bytes"),
    (b"[[[1]]]", b"[[[[1]]]]", "/0/0/0", "3 levels"),
    (b'{"a":[{"b":1}]}', b'{"a":[{"b":{}}]}', "/a/0/b", "3 levels"),
    (b"[99999]", b"[100000]", "/0", "5 digits"),
    (b"[-99999]", b"[-100000]", "/0", "5 digits"),
    (b'["123456"]', b'["1234567"]', "/0", "7 characters"),
    (
        '["\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"]'.encode(),
        '["\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"]'.encode(),
        "/0",
        "7 characters",
    ),
    (b'{"123456":1}', b'{"1234567":1}', "", "7 characters"),
    (b"[1,2,3,4,5,6,7]", b"[1,2,3,4,5,6,7,8]", "", "at most 7 entries"),
    (b"[[1,2],[3,4],5]", b"[[1,2],[3,4],[5]]", "/2", "at most 7 entries"),
    (b'["a,b,c","[","{{"]', b"[[],[],[],[],[],[],[],[]]", "", "at most 7 entries"),
]


@pytest.mark.parametrize(("last", "first", "path", "words"), EDGES)
def test_each_limit_at_its_edge(last, first, path, words):
    parse_strictly(last, SMALL)
    kind, where, message = refusal(first, SMALL)
    assert (kind, where) == (TooLargeError, path)
    assert words in message


@pytest.mark.parametrize("field", ["max_depth", "max_digits"])
@pytest.mark.parametrize("value", [0, 5_000])
def test_limits_beyond_the_parser_are_refused(field, value):
    with pytest.raises(ValueError, match="max_depth is 1 to 200"):
        Limits(**{field: value})


def test_the_first_fault_in_the_document_is_named():
    assert refusal(b'{"b": ["ok", 1e999], "a": "\\u0000"}')[1] == "/b/1"
    assert refusal(b'{"b": [["\\u0000"], 1e999]}')[1] == "/b/0/0"


# --- packaged corpora --------------------------------------------------------------------------------------------------


def corpus(shared_data):
    lines = gzip.decompress((shared_data / "hostile" / "json_test_suite.jsonl.gz").read_bytes()).splitlines()
    rows = [json.loads(line) for line in lines]
    return [(row["name"], row["expected"], base64.b64decode(row["content_base64"])) for row in rows]


def outcome(data):
    try:
        return parse_strictly(data, LIMITS)
    except (MalformedError, TooLargeError) as error:
        return error


# Valid JSON whose value would not survive, so we refuse it.
NOT_TAKEN = {
    "y_object_duplicated_key.json",
    "y_object_duplicated_key_and_value.json",
    "y_object_escaped_null_in_key.json",
    "y_string_null_escape.json",
}


@pytest.mark.shared_data
def test_json_test_suite(shared_data):
    rows = corpus(shared_data)
    assert len(rows) == 318
    found = {name: outcome(data) for name, _, data in rows}
    refused = {name for name, value in found.items() if isinstance(value, Exception)}
    assert {name for name, expected, _ in rows if expected == "n"} <= refused
    assert {name for name, expected, _ in rows if expected == "y"} & refused == NOT_TAKEN
    assert all(isinstance(found[name], MalformedError) for name in NOT_TAKEN)
    changed = [
        name
        for name, expected, data in rows
        if name not in refused and not same(found[name], json.loads(data.decode("utf-8")))
    ]
    assert changed == []


# --- laws --------------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
INTEGERS = st.integers(-(10**64) + 1, 10**64 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


@given(JSON, st.booleans())
@example("4e123 e000 \\u0000", False)
@example([5e-324, 1.7976931348623157e308], True)
def test_what_was_written_is_read(value, escaped):
    assert same(parse_strictly(json.dumps(value, ensure_ascii=escaped).encode(), LIMITS), value)


@given(st.binary(max_size=40) | st.text(alphabet='[]{}",:0123456789eE+-.\\utrfalsn \n', max_size=40).map(str.encode))
def test_bytes_are_read_as_the_standard_library_reads_them_or_refused(data):
    found = outcome(data)
    if not isinstance(found, Exception):
        assert same(found, json.loads(data.decode("utf-8")))


NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.sampled_from(["0", "1", "9" * 20, "1" + "0" * 63, "123"]),
    st.sampled_from(["", ".0", ".5", "." + "0" * 70 + "1", "." + "0" * 30 + "7"]),
    st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 500))
    | st.just(""),
)


@given(st.lists(NUMBERS, min_size=1, max_size=3))
def test_a_number_is_the_nearest_float_or_refused(literals):
    expected = [json.loads(literal) for literal in literals]
    zero = [
        value == 0 and any(c in "123456789" for c in text.lower().split("e")[0])
        for text, value in zip(literals, expected, strict=True)
    ]
    lost = any(zero) or any(isinstance(value, float) and math.isinf(value) for value in expected)
    found = outcome(f"[{', '.join(literals)}]".encode())
    assert isinstance(found, MalformedError) if lost else same(found, expected)
