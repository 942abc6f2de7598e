"""Text in a trace that seems to speak to whoever judges it. A signal for people: it never changes a score.

It looks where strangers write: tool results, what users say and paste, the model's own texts, and the catalogue. What it can
find is what attacks have in common when they do not try to hide from it; text made to get past it will. The guarantees
against injection lie elsewhere: code decides first, a judge has no tools, and its reply is read strictly.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, unhexlify
from codecs import encode
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import islice
from typing import Literal, NamedTuple, cast
from unicodedata import normalize
from urllib.parse import unquote

from pydantic import JsonValue

from service.core.evidence.injection.phrases import (
    COMMANDS,
    COMMANDS_ELSEWHERE,
    COMMANDS_IN_DATA,
    MARKERS,
    REPLIES,
    VERDICTS,
    Phrase,
)
from service.core.json.pointers import build_pointer, escape_token
from service.core.json.values import format_value
from service.core.outcome import Finding
from service.core.trace import Trace

Sort = Literal["verdict_like", "instruction_to_judge", "role_markers", "invisible_characters", "encoded"]

MAX_FINDINGS = 20
MAX_CHARACTERS = 1_000_000
"""Characters of the whole trace that are looked at, the catalogue first, then results, then texts."""
MAX_DECODED = 50
"""Encoded passages of one text that are decoded."""


class _TextPlace(NamedTuple):
    path: str
    text: str
    told_to_model: bool
    """Whether it is there to instruct the model: descriptions and users' messages are."""


def find_suspicions(trace: Trace) -> tuple[Finding, ...]:
    """At most 20 findings `injection_suspected`, of each text at most one for each sort; the message names the sort.

    verdict_like: a judgement of the answer, or a reply in the form of a judge's. instruction_to_judge: tells its reader,
    judge or model, what to do. role_markers: the marks between messages of a chat. invisible_characters: tag characters,
    direction overrides, runs of zero-width ones. encoded: one of the above in base64, hexadecimal, percent or HTML escapes,
    ROT13 or backwards. What stands in quotation marks or code beside other text is taken as a mention and passed over.

    Time is linear: texts beyond the first million characters are not looked at, which `injection_unchecked` then says.
    """
    found: list[Finding] = []
    left = MAX_CHARACTERS
    for place in _iter_places(trace):
        if left < len(place.text):
            note = f"not looked at for injections from here on: over {MAX_CHARACTERS} characters in all"
            return (*found[: MAX_FINDINGS - 1], Finding("injection_unchecked", note, place.path))
        left -= len(place.text) + 1
        if len(found) < MAX_FINDINGS:
            found += [_build_finding(sort, excerpt, place) for sort, excerpt in _find_suspected(place)]
    return tuple(found[:MAX_FINDINGS])


def _build_finding(sort: Sort, excerpt: str, place: _TextPlace) -> Finding:
    return Finding("injection_suspected", f"{sort}: {format_value(excerpt)}", place.path)


def _iter_places(trace: Trace) -> Iterator[_TextPlace]:
    """The texts that strangers, users or the model wrote, with their pointers."""
    for n, tool in enumerate(trace.tools or ()):
        yield _TextPlace(build_pointer("tools", n, "name"), tool.name, True)
        yield _TextPlace(build_pointer("tools", n, "description"), tool.description, True)
        for field, schema in (("parameters", tool.parameters), ("output_schema", tool.output_schema)):
            yield from _iter_texts(schema, build_pointer("tools", n, field), told_to_model=True)
    for step in trace.steps:
        if step.result is not None:
            yield from _iter_texts(step.result.content, f"/steps/{step.index}/result/content", told_to_model=False)
    last = len(trace.messages) - 1
    for n, message in enumerate(trace.messages):
        if message.role != "system" and not (n == last and message.text == trace.answer):
            yield _TextPlace(f"/messages/{n}/text", message.text, message.role == "user")
    yield _TextPlace("/answer", trace.answer or "", False)


def _iter_texts(value: object, path: str, *, told_to_model: bool) -> Iterator[_TextPlace]:
    """The texts in a JSON value, keys included, in document order."""
    stack: list[tuple[str, object]] = [(path, value)]
    while stack:
        at, here = stack.pop()
        if isinstance(here, str):
            yield _TextPlace(at, here, told_to_model)
        elif isinstance(here, Mapping):
            members = dict(cast("Mapping[str, JsonValue]", here))
            stack += [(f"{at}/{escape_token(key)}", item) for key, item in reversed(members.items())]
            stack += [(f"{at}/{escape_token(key)}", key) for key in members if len(key) > 16]
        elif isinstance(here, list):
            items = cast("list[JsonValue]", here)
            stack += [(f"{at}/{n}", items[n]) for n in range(len(items) - 1, -1, -1)]


def _find_suspected(place: _TextPlace) -> Iterator[tuple[Sort, str]]:
    """Each sort that the text shows, with a passage."""
    if len(place.text) < 8:
        return
    hidden = _find_invisible(place.text)
    if hidden is not None:
        yield "invisible_characters", hidden
    plain = _normalise_text(place.text)
    yield from _find_phrases(plain, told_to_model=place.told_to_model)
    encoded = next(_find_decoded_phrases(place.text), None)
    if encoded is not None:
        yield "encoded", encoded


# What is written in the open.

_NONE_SEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_QUOTES = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201b": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\u00ab": '"',
        "\u00bb": '"',
    }
)
_LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u03bf\u03b1\u03b9\u03bd\u04bb\u0501",
    "aeopcyxijsoaivhd",
)
_LATIN = re.compile("[a-z]")


def _normalise_text(text: str) -> str:
    """The text for phrases: NFKC, lower case, without characters that are not seen, quotation marks of one kind."""
    return normalize("NFKC", _NONE_SEEN.sub("", text)).lower().translate(_QUOTES)


_CODE = re.compile(r"```[^`]{1,4000}```|`[^`\n]{1,300}`|<code>[^<]{1,1000}</code>")
_QUOTED = re.compile(_CODE.pattern + r"|\"[^\"\n]{1,120}\"|(?<![a-z0-9])'[^'\n]{4,120}'(?![a-z0-9])")


def _drop_mentions(text: str) -> str:
    """The text without what it only mentions."""
    return _drop_mention(_QUOTED, text)


def _drop_mention(mention: re.Pattern[str], text: str) -> str:
    """The text without quotations or code, unless there is hardly anything else: a text that is all quotation is used."""
    rest = mention.sub(" ", text)
    beside = len(rest.strip())
    return rest if 2 * beside > len(text.strip()) or beside > 60 else text


def _latinise(text: str) -> str:
    """The text with letters that look Latin made so, where it has Latin ones too."""
    return text.translate(_LOOKALIKES) if not text.isascii() and _LATIN.search(text) else text


def _find_phrases(plain: str, *, told_to_model: bool) -> Iterator[tuple[Sort, str]]:
    """The sorts whose phrases a text uses, with a passage."""
    used = _drop_mentions(plain)
    latin = _latinise(used)
    flat = " ".join(latin.split())
    commands = _find_first(COMMANDS, flat) or _find_first(COMMANDS_ELSEWHERE, used)
    hits: tuple[tuple[Sort, str | None], ...] = (
        ("instruction_to_judge", commands if commands or told_to_model else _find_first(COMMANDS_IN_DATA, flat)),
        ("verdict_like", _find_first(VERDICTS, latin) or _find_first(REPLIES, _latinise(_drop_mention(_CODE, plain)))),
        ("role_markers", _find_first(MARKERS, latin)),
    )
    for sort, hit in hits:
        if hit is not None:
            yield sort, hit


def _find_first(phrases: Sequence[Phrase], text: str) -> str | None:
    """The passage where the first of the phrases that stand there does."""
    match = next(filter(None, (phrase.find_in(text) for phrase in phrases)), None)
    return None if match is None else text[max(0, match.start() - 10) : match.end() + 20]


# What cannot be seen.

_TAGGED = re.compile("(?<!\U0001f3f4)[\U000e0020-\U000e007f]{2,}")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,12}\U000e007f")
_OVERRIDES = re.compile("[\u202d\u202e]")
_RUNS = re.compile(
    "[\u200b\u2060-\u2064\u180e\ufeff]{4,}|[\u200b-\u200d\u2060-\u2064\ufeff]{8,}|[\ufe00-\ufe0f]{4,}|[\U000e0100-\U000e01ef]{4,}"
)
_SPRINKLED = re.compile("[a-zA-Z][\u200b\u200c\u200d\u2060-\u2064\u180e](?=[a-zA-Z])")


def _find_invisible(text: str) -> str | None:
    """The first passage with characters that hide text; the ones that emoji, flags and scripts need are no such."""
    if text.isascii():
        return None
    rest = _FLAG.sub("", text)
    for pattern in (_TAGGED, _OVERRIDES, _RUNS):
        match = pattern.search(rest)
        if match is not None:
            return rest[max(0, match.start() - 20) : match.start() + 20]
    sprinkled = next(islice(_SPRINKLED.finditer(rest), 5, None), None)
    return None if sprinkled is None else rest[max(0, sprinkled.start() - 20) : sprinkled.end() + 20]


# What is written in code.

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,20000}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[ :]?){16,10000}")
_ESCAPED = re.compile(r"%[0-9a-fA-F]{2}[^%\n]{0,3}%[0-9a-fA-F]{2}|&#[xX]?[0-9a-fA-F]{2,6};")
_TURNED = ("instruction", "previous", "verdict", "judge", "grader", "evaluator", "score", "ignore", "disregard")
_ROTATED = tuple(encode(word, "rot13") for word in _TURNED)
_BACKWARD = tuple(word[::-1] for word in _TURNED)


def _find_decoded_phrases(text: str) -> Iterator[str]:
    """Passages of what the text says once decoded, as far as it says more than it does in the open."""
    for decoded in _decode_passages(text):
        plain = _normalise_text(decoded)
        for _, hit in _find_phrases(plain, told_to_model=False):
            yield hit


def _decode_passages(text: str) -> Iterator[str]:
    for found, read in ((_BASE64, _decode_base64), (_HEX, _decode_hex)):
        for match in islice(found.finditer(text), MAX_DECODED):
            decoded = read(match[0])
            if decoded is not None and decoded.isprintable():
                yield decoded
    if _ESCAPED.search(text):
        yield unquote(unescape(text))
    if any(word in text for word in _ROTATED):
        yield encode(text, "rot13")
    if any(word in text for word in _BACKWARD):
        yield text[::-1]


def _decode_base64(text: str) -> str | None:
    core = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return a2b_base64(core[: len(core) - (len(core) % 4 == 1)] + "=" * (-len(core) % 4)).decode()
    except (Error, UnicodeDecodeError):
        return None


def _decode_hex(text: str) -> str | None:
    try:
        return unhexlify(text.replace(" ", "").replace(":", "")).decode()
    except (Error, UnicodeDecodeError):
        return None
