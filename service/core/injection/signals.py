"""Detect text in a trace that seems to address whoever judges it. A signal for people: it never changes a score.

It searches wherever strangers can write: tool results, what users say and paste, the model's own texts, and the tool
catalogue. It finds what attacks have in common when they do not hide from it; text crafted to evade it will. The
guarantees against injection lie elsewhere: code decides first, a judge has no tools, and its reply is read strictly.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, unhexlify
from codecs import encode
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html import unescape
from itertools import islice
from typing import Literal, NamedTuple
from unicodedata import normalize
from urllib.parse import unquote

from service.core.injection.phrases import (
    COMMANDS,
    COMMANDS_ELSEWHERE,
    COMMANDS_IN_DATA,
    MARKERS,
    REPLIES,
    VERDICTS,
    PhraseGroup,
    list_anchors,
)
from service.core.json.texts import list_placed_texts, list_texts
from service.core.json.values import format_value
from service.core.outcome import Finding
from service.core.trace import ToolDef, Trace

Sort = Literal["verdict_like", "instruction_to_judge", "role_markers", "invisible_characters", "encoded"]

MAX_FINDINGS = 20
MAX_CHARACTERS = 1_000_000
"""Most characters of a trace that are searched: the tool catalogue first, then results, then texts."""
MIN_CHARACTERS = 8
"""A shorter text is not searched."""
MAX_CACHED_CHARACTERS = 1_000
"""What a longer text shows is not cached."""
MAX_DECODED = 50
"""Most passages of one text that are decoded, for each encoding."""


class _TextPlace(NamedTuple):
    path: str
    text: str
    instructs_model: bool
    """Whether the text is there to instruct the model, like descriptions and users' messages."""


def find_suspicions(trace: Trace) -> tuple[Finding, ...]:
    """Return at most 20 findings: `injection_suspected`, one per text and sort, with the sort in its message.

    verdict_like: a judgement of the answer, or a reply in the form of a judge's. instruction_to_judge: tells its reader,
    judge or model, what to do. role_markers: the markers between messages of a chat. invisible_characters: tag
    characters, direction overrides, runs of zero-width characters. encoded: one of the above in base64, hexadecimal,
    percent or HTML escapes, ROT13 or backwards. Quotations and code amid other text count as mentions and are skipped.

    Time is linear: texts beyond the first million characters are not searched, which `injection_unchecked` reports.
    """
    if not _shows_anything(trace):
        return ()
    places, unchecked = _bound_places(_iter_places(trace))
    found = (_build_finding(sort, excerpt, place) for place in places for sort, excerpt in _find_suspected(place))
    return (*islice(found, MAX_FINDINGS - len(unchecked)), *unchecked)


def _shows_anything(trace: Trace) -> bool:
    """Whether any text shows anything or the texts are too long. Most traces end here, before any pointer is built."""
    size = _measure_tools(trace.tools or ())
    if size is None:
        return True
    for message in trace.messages:
        if message.role == "user" or (message.role != "system" and message.text):
            size += len(message.text) + 1
            if _find_in_instructions(message.text) if message.role == "user" else _find_in_data(message.text):
                return True
    for step in trace.steps:
        for text in () if step.result is None else list_texts(step.result.content):
            size += len(text) + 1
            if _find_in_data(text):
                return True
    if trace.answer:  # it is searched as the last message
        size += len(trace.answer) + 1
    return size > MAX_CHARACTERS


def _measure_tools(tools: Iterable[ToolDef]) -> int | None:
    """Count the characters of all tools' texts; None if one of them shows anything."""
    size = 0
    for tool in tools:
        tool_size = _measure_tool(tool)
        if tool_size is None:
            return None
        size += tool_size
    return size


def _measure_tool(tool: ToolDef) -> int | None:
    """Count the characters of a tool's texts; None if one of them shows anything. The result is kept with the tool."""
    if _measure_tool not in tool.memo:
        texts = list_texts([tool.name, tool.description, tool.parameters, tool.output_schema])
        searched = [text for text in texts if len(text) >= MIN_CHARACTERS]  # most are `string` and the like
        tool.memo[_measure_tool] = (
            None if any(map(_find_in_instructions, searched)) else sum(map(len, texts)) + len(texts)
        )
    return tool.memo[_measure_tool]  # pyright: ignore[reportReturnType] (the value stored above)


def _bound_places(places: Iterable[_TextPlace]) -> tuple[list[_TextPlace], tuple[Finding, ...]]:
    """Return the places up to the limit, and a finding if there are more."""
    searched: list[_TextPlace] = []
    left = MAX_CHARACTERS
    for place in places:
        if left < len(place.text):
            note = f"not looked at for injections from here on: over {MAX_CHARACTERS} characters in all"
            return searched, (Finding("injection_unchecked", note, place.path),)
        left -= len(place.text) + 1
        searched.append(place)
    return searched, ()


def _build_finding(sort: Sort, excerpt: str, place: _TextPlace) -> Finding:
    return Finding("injection_suspected", f"{sort}: {format_value(excerpt)}", place.path)


def _iter_places(trace: Trace) -> Iterator[_TextPlace]:
    """Yield the texts that strangers, users or the model wrote, with their pointers."""
    for n, tool in enumerate(trace.tools or ()):
        yield from [_TextPlace(f"/tools/{n}{path}", text, True) for path, text in tool.texts]
    for step in trace.steps:
        if step.result is not None:
            texts = list_placed_texts(step.result.content, f"/steps/{step.index}/result/content")
            yield from [_TextPlace(path, text, False) for path, text in texts]
    last = len(trace.messages) - 1
    for n, message in enumerate(trace.messages):
        if message.role != "system" and not (n == last and message.text == trace.answer):
            yield _TextPlace(f"/messages/{n}/text", message.text, message.role == "user")
    yield _TextPlace("/answer", trace.answer or "", False)


def _find_suspected(place: _TextPlace) -> tuple[tuple[Sort, str], ...]:
    """Return each sort that a text shows, with a passage."""
    return _find_in_instructions(place.text) if place.instructs_model else _find_in_data(place.text)


def _find_in_instructions(text: str) -> tuple[tuple[Sort, str], ...]:
    """Return what a text that is there to instruct the model shows."""
    return _find_cached(text, True) if len(text) <= MAX_CACHED_CHARACTERS else _find_sorts(text, True)


def _find_in_data(text: str) -> tuple[tuple[Sort, str], ...]:
    """Return what any other text shows."""
    return _find_cached(text, False) if len(text) <= MAX_CACHED_CHARACTERS else _find_sorts(text, False)


def _find_sorts(text: str, instructs_model: bool) -> tuple[tuple[Sort, str], ...]:  # noqa: FBT001
    return tuple(_iter_sorts(text, instructs_model=instructs_model)) if len(text) >= MIN_CHARACTERS else ()


_find_cached = lru_cache(maxsize=8192)(_find_sorts)
"""`_find_sorts` with a cache: most texts are those of tools, which recur in every trace."""


def _iter_sorts(text: str, *, instructs_model: bool) -> Iterator[tuple[Sort, str]]:
    hidden = _find_invisible(text)
    if hidden is not None:
        yield "invisible_characters", hidden
    yield from _find_phrases(_normalise_text(text), instructs_model=instructs_model)
    encoded = next(_find_decoded_phrases(text), None)
    if encoded is not None:
        yield "encoded", encoded


# Text in the open.

_INVISIBLE = re.compile(
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
    """Normalise a text for phrases: NFKC, lower case, no invisible characters, plain quotation marks."""
    if text.isascii():
        return text.lower()
    return normalize("NFKC", _INVISIBLE.sub("", text)).lower().translate(_QUOTES)


_CODE = re.compile(r"```[^`]{1,4000}```|`[^`\n]{1,300}`|<code>[^<]{1,1000}</code>")
_QUOTED = re.compile(_CODE.pattern + r"|\"[^\"\n]{1,120}\"|(?<![a-z0-9])'[^'\n]{4,120}'(?![a-z0-9])")


def _drop_mentions(text: str) -> str:
    """Remove from a text what it only mentions."""
    return _drop_mention(_QUOTED, text)


def _drop_mention(mention: re.Pattern[str], text: str) -> str:
    """Remove quotations or code, unless there is hardly anything else: a text that is all quotation is meant."""
    rest = mention.sub(" ", text)
    beside = len(rest.strip())
    return rest if 2 * beside > len(text.strip()) or beside > 60 else text


def _latinise(text: str) -> str:
    """Replace letters that look Latin by Latin ones, if a text has Latin letters too."""
    return text.translate(_LOOKALIKES) if not text.isascii() and _LATIN.search(text) else text


def _find_phrases(plain: str, *, instructs_model: bool) -> Iterator[tuple[Sort, str]]:
    """Yield the sorts whose phrases a text uses, with a passage."""
    anchors = _list_anchors(plain)
    if not anchors:
        return
    used = _drop_mentions(plain)
    latin = _latinise(used)
    flat = " ".join(latin.split())
    commands = _find_passage(COMMANDS, flat, anchors) or _find_passage(COMMANDS_ELSEWHERE, used, anchors)
    in_data = None if commands or instructs_model else _find_passage(COMMANDS_IN_DATA, flat, anchors)
    replies = _find_passage(REPLIES, _latinise(_drop_mention(_CODE, plain)), anchors)
    hits: tuple[tuple[Sort, str | None], ...] = (
        ("instruction_to_judge", commands or in_data),
        ("verdict_like", _find_passage(VERDICTS, latin, anchors) or replies),
        ("role_markers", _find_passage(MARKERS, latin, anchors)),
    )
    for sort, hit in hits:
        if hit is not None:
            yield sort, hit


def _list_anchors(plain: str) -> list[str]:
    """List the anchors in a text, whatever its spacing, including those in mentions."""
    flat = " ".join(_latinise(plain).split())
    return list_anchors(flat if plain.isascii() else f"{flat} {plain}")


def _find_passage(group: PhraseGroup, text: str, anchors: Sequence[str]) -> str | None:
    """Return the passage around the first pattern found in a text."""
    match = group.find_in(text, anchors)
    return None if match is None else text[max(0, match.start() - 10) : match.end() + 20]


# Invisible text.

_TAGGED = re.compile("(?<!\U0001f3f4)[\U000e0020-\U000e007f]{2,}")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,12}\U000e007f")
_OVERRIDES = re.compile("[\u202d\u202e]")
_RUNS = re.compile(
    "[\u200b\u2060-\u2064\u180e\ufeff]{4,}|[\u200b-\u200d\u2060-\u2064\ufeff]{8,}|[\ufe00-\ufe0f]{4,}|[\U000e0100-\U000e01ef]{4,}"
)
_SPRINKLED = re.compile("[a-zA-Z][\u200b\u200c\u200d\u2060-\u2064\u180e](?=[a-zA-Z])")


def _find_invisible(text: str) -> str | None:
    """Return the first passage with characters that hide text, not those that emoji, flags and scripts need."""
    if text.isascii():
        return None
    rest = _FLAG.sub("", text)
    for pattern in (_TAGGED, _OVERRIDES, _RUNS):
        match = pattern.search(rest)
        if match is not None:
            return rest[max(0, match.start() - 20) : match.start() + 20]
    sprinkled = next(islice(_SPRINKLED.finditer(rest), 5, None), None)
    return None if sprinkled is None else rest[max(0, sprinkled.start() - 20) : sprinkled.end() + 20]


# Encoded text.

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,20000}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[ :]?){16,10000}")
_ESCAPED = re.compile(r"%[0-9a-fA-F]{2}[^%\n]{0,3}%[0-9a-fA-F]{2}|&#[xX]?[0-9a-fA-F]{2,6};")
_TURNED = ("instruction", "previous", "verdict", "judge", "grader", "evaluator", "score", "ignore", "disregard")
_ROTATED = tuple(encode(word, "rot13") for word in _TURNED)
_BACKWARD = tuple(word[::-1] for word in _TURNED)


def _find_decoded_phrases(text: str) -> Iterator[str]:
    """Yield the passages that a text shows once decoded."""
    for decoded in _decode_passages(text):
        plain = _normalise_text(decoded)
        for _, hit in _find_phrases(plain, instructs_model=False):
            yield hit


def _decode_passages(text: str) -> Iterator[str]:
    for pattern, decode in ((_BASE64, _decode_base64), (_HEX, _decode_hex)):
        for match in islice(pattern.finditer(text), MAX_DECODED):
            decoded = decode(match[0])
            if decoded is not None and decoded.isprintable():
                yield decoded
    if _ESCAPED.search(text):
        yield unquote(unescape(text))
    if [word for word in _ROTATED if word in text]:
        yield encode(text, "rot13")
    if [word for word in _BACKWARD if word in text]:
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
