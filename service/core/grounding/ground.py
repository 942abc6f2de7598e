"""Say of every value in a text where it comes from: found, derived, given, general, or nowhere."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from service.core.grounding.derive import Deriver
from service.core.grounding.facts import Fact, split_plain
from service.core.grounding.known import KnownFacts
from service.core.grounding.nearest import list_nearest
from service.core.grounding.origins import Grounded
from service.core.grounding.reading.languages import DATA, Words
from service.core.grounding.reading.mentions import Mention, Reading, normalize_code
from service.core.grounding.reading.values import find_values
from service.core.grounding.steps import Scene, Surroundings, find_derivation


class Placed(NamedTuple):
    """A mention with its origin, for those who ask further."""

    mention: Mention
    grounded: Grounded
    may_be_derived: bool = False
    """Whether a step leads to it that may do so by chance: it counts as found nowhere, and is not suspected."""


_GENERAL = {
    dimension: frozenset(map(float, each.split())) for dimension, each in cast("Words", DATA["general"]).items()
}
"""By dimension, numbers that everybody knows."""
_BY_CHANCE = ("rounded", "unit")
"""How a value may be found that is another: then it is shown which others are close."""
MAX_JOINED = 8
"""The most pieces of which a code may be written."""


def ground_text(
    text: str, pointer: str, known: KnownFacts, deriver: Deriver | None = None, said: list[Mention] | None = None
) -> list[Placed]:
    """Return the values of a text with their origins, in order. Linear, but for a bounded search for derivations.

    `said`: its values, if they have been read.
    """
    mentions = _join_codes(text, find_values(text) if said is None else said, known)
    deriver = deriver or Deriver(known)
    named = _list_named(text, mentions, known)
    starts = [one.start for one, _ in named]
    held: list[tuple[Mention, Sequence[Fact]]] = [*named]
    rest: list[Mention] = []
    for mention in mentions:
        likeliest, *others = mention.readings
        exact = (near for one in others if (near := known.find(one)) and near[0].how not in ("unit", "rounded"))
        near: Sequence[Fact] = known.find(likeliest) or next(exact, ())
        if not near and (at := bisect_right(starts, mention.start)) and mention.end <= named[at - 1][0].end:
            near = named[at - 1][1]
        if near:
            held.append((mention, near))
        else:
            rest.append(mention)
    result = [Placed(mention, _build_found(mention, pointer, near)) for mention, near in held]
    loose = [one for one in result if one.grounded.how in _BY_CHANCE]
    if rest or loose:
        around = Surroundings(text, pointer, held, rest, known)
        result = [one for one in result if one not in loose]
        result += [_show_nearest(one, _look_around(one.mention, around, deriver), known, deriver) for one in loose]
        result += [_ground_rest(mention, pointer, around, known, deriver) for mention in rest]
    return sorted(result, key=lambda one: one.mention.start)


def _look_around(mention: Mention, around: Surroundings, deriver: Deriver) -> Scene:
    scene = around.look_around(mention) if not deriver.exhausted else Scene([], ())
    deriver.spend(len(scene.steps))
    return scene


def _show_nearest(one: Placed, scene: Scene, known: KnownFacts, deriver: Deriver) -> Placed:
    """Add the held values that come closest to a value, unless not all were taken in."""
    if known.full or deriver.exhausted:
        return one
    others = list_nearest(
        one.mention, scene, known, deriver, found=one.grounded.origin in ("found", "given", "derived")
    )
    return one._replace(grounded=replace(one.grounded, nearest=others))


def _ground_rest(mention: Mention, pointer: str, around: Surroundings, known: KnownFacts, deriver: Deriver) -> Placed:
    """Say of a value that nothing holds where it comes from."""
    scene = _look_around(mention, around, deriver)
    likeliest, found = mention.readings[0], Grounded(mention.text, pointer, "nowhere", (), None, (), *mention[1:3])
    readings = [one for one in mention.readings if one.kind == likeliest.kind]
    step = find_derivation(readings, scene.steps)
    if step is None or step.by_chance:
        step = next(filter(None, map(deriver.derive, readings)), step)
    if step is not None and not step.by_chance:
        found = replace(found, origin="derived", sources=step.sources, how=step.how)
    elif mention.ordinal or (
        likeliest.kind == "number" and abs(likeliest.number) in _GENERAL.get(likeliest.dimension or "number", ())
    ):
        found = replace(found, origin="general")
    elif known.full or deriver.exhausted:
        found = replace(found, origin="not_looked_for")
    return _show_nearest(Placed(mention, found, may_be_derived=step is not None), scene, known, deriver)


def _build_found(mention: Mention, pointer: str, near: Sequence[Fact]) -> Grounded:
    origin, how = "found" if near[0].source in ("result", "error") else "given", near[0].how
    sources = tuple(dict.fromkeys([one.pointer for one in near]))
    return Grounded(mention.text, pointer, origin, sources, how if how != "same" else None, (), *mention[1:3])


def _join_codes(text: str, mentions: list[Mention], known: KnownFacts) -> list[Mention]:
    """Join neighbouring pieces that together are a code that something holds: `1Z 999 AA1 01 2345 6784`."""
    found: list[Mention] = []
    skip_until = 0
    for mention in mentions:
        if mention.start < skip_until:
            continue
        reading = mention.readings[0]
        may_go_on = reading.kind == "code" or (reading.kind == "number" and not reading.dimension)
        joined = _join_from(text, mention, known) if may_go_on else None
        found.append(joined or mention)
        skip_until = joined.end if joined else 0
    return found


_PIECE = re.compile(r"(?:[ \u00a0.]|[ \u00a0]?[/\u2010-\u2013-][ \u00a0]?|[ ]?[()][ ]?)([^\W_]+)")
_LETTERS_BEFORE = re.compile(r"([^\W\d_]{1,4})[ \u00a0./-]$")


def _join_from(text: str, mention: Mention, known: KnownFacts) -> Mention | None:
    before = _LETTERS_BEFORE.search(text[max(0, mention.start - 6) : mention.start])
    starts = [mention.start, *([mention.start - len(before.group())] if before else [])]
    code = normalize_code(mention.text)
    is_whole = known.has_code(code)
    for start in starts:
        head = normalize_code(text[start : mention.end]) if start != mention.start else code
        if is_whole and not known.goes_on(head, whole=start != mention.start):
            continue
        ends = [*reversed(list(_list_ends(text, mention.end))), *([mention.end] if start != mention.start else [])]
        codes = {end: _read_joined(text[start:end], known) for end in ends}
        best = next((end for end in ends if known.has_code(codes[end])), 0)
        if not best and not is_whole:
            best = next((end for end in ends if known.find_slip(codes[end])), 0)
        best = best or next((end for end in ends if known.has_code_part(codes[end])), 0)
        if best:
            code = Reading("code", codes[best])
            return Mention(text[start:best], start, best, (code,))
    return None


def _read_joined(text: str, known: KnownFacts) -> str:
    """Read pieces as a code; where nothing holds it, without the `(0)` and the `00` with which a phone number may be written."""
    code = normalize_code(text)
    if known.has_code(code):
        return code
    bare = normalize_code(text.replace("(0)", "")).removeprefix("00")
    return bare if known.has_code(bare) else code


def _list_ends(text: str, end: int) -> Iterator[int]:
    """Yield where a code that is written in pieces may end: after each further piece that has a digit or is short."""
    for _ in range(MAX_JOINED):
        piece = _PIECE.match(text, end)
        if piece is None or (piece[1].isalpha() and len(piece[1]) > 4):
            return
        end = piece.end()
        yield end


_NAME_WORD = re.compile(r"[^\W_]+")


def _list_named(text: str, mentions: Sequence[Mention], known: KnownFacts) -> list[tuple[Mention, list[Fact]]]:
    """List the names of results that stand in a text, so that it can be seen where."""
    sizes, names = known.store.keys.name_sizes, known.store.keys.names.cells
    taken, spans = {one.start for one in mentions}, {(one.start, one.end) for one in mentions}
    words = [*_NAME_WORD.finditer(text)]
    plain = [word.lower() if word.isascii() else "".join(split_plain(word)) for word in [match[0] for match in words]]
    found: list[tuple[Mention, list[Fact]]] = []
    looked_up: dict[str, list[Fact]] = {}
    end = 0
    for n in [n for n, word in enumerate(plain) if word in sizes]:
        start = words[n].start()
        for size in sorted(sizes[plain[n]], reverse=True) if start >= end else ():
            name = "".join(plain[n : n + size])
            if name not in names or (size == 1 and (len(name) <= 2 or start in taken)):
                continue
            last = words[min(n + size, len(words)) - 1].end()
            if (start, last) in spans:
                end = last
                break
            if name not in looked_up:
                looked_up[name] = known.find_named(plain[n : n + size], ("result",))
            if looked_up[name]:
                end = last
                code = Reading("code", normalize_code(text[start:end]))
                found.append((Mention(text[start:end], start, end, (code,)), looked_up[name]))
                break
    return found
