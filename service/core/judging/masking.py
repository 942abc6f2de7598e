"""Replace secrets and identifiers by stable stand-ins, so that a judge can follow a value through a trace without seeing it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from pydantic import JsonValue

from service.core.judging.sensitive_values import (
    FOLD,
    MAX_RUNS,
    RUN,
    Sensitive,
    SensitiveKind,
    Spelling,
    extract_core,
    is_card,
    is_number,
    iter_leaves,
    list_sensitive,
)
from service.core.trace import Trace

MAX_ATTEMPTS = 12
"""Attempts to find a stand-in that does not occur in the trace. A value for which none is found is not masked."""


class _Entry(NamedTuple):
    """A value or its stand-in: its letters and digits, its text, how it may be written, and what replaces it."""

    core: str
    text: str
    how: Spelling
    other: str


class _Index(NamedTuple):
    """Entries by their letters and digits, with their first characters, to rule out a match quickly."""

    entries: Mapping[str, _Entry]
    heads: frozenset[str]
    longest: int


_NOTHING = _Index({}, frozenset(), 0)


@dataclass(frozen=True, slots=True)
class Masks:
    """The stand-ins of one trace, in both directions. Falsy if there is nothing to mask.

    A stand-in keeps the value's length and separators, with a digit for each digit and a letter of the same case for each
    ASCII letter. Other characters stay, and so do the last part of a mail address's domain and the last four digits of a
    card, which receipts show. Stand-ins are hashes, so the same trace always reads the same. They are not encryption:
    whoever knows the rule can try all four-digit order numbers.
    """

    forward: _Index = _NOTHING
    backward: _Index = _NOTHING
    names: frozenset[str] = frozenset()
    """Names of tools, which stay if they are the whole string."""

    def __bool__(self) -> bool:
        return bool(self.forward.entries)

    def mask(self, value: JsonValue) -> JsonValue:
        """Return the value with stand-ins in its texts and numbers, at any depth. Keys, their order and all types stay."""
        return _rebuild(value, self._mask_leaf) if self else value

    def unmask(self, text: str) -> str:
        """Return the text with the original values: for what a judge wrote, or copied from what it was shown."""
        return text if text in self.names else _replace_entries(text, self.backward)

    def _mask_leaf(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return value if value in self.names else _replace_entries(value, self.forward)
        return int(_replace_entries(str(value), self.forward)) if is_number(value) else value


UNMASKED = Masks()
"""Shows everything as it is."""


def build_masks(trace: Trace, what: frozenset[SensitiveKind]) -> Masks:
    """Build the stand-ins for all values of these kinds in the trace, in time linear in its size.

    secrets: known shapes (API keys, bearer tokens and JWTs, private keys, card numbers, IBANs), and values under a key or
    after a word like `password`. identifiers: UUIDs, and values that look like identifiers under a key like `order_id` or
    `reservation_code`, or after a word like `order`. contacts: mail addresses and telephone numbers.

    Never masked: amounts, dates, names of tools and fields (a value that is also the key of an object), numbers of fewer
    than four digits, and numbers of up to eight digits that also occur in a field that names no identifier.
    """
    leaves = list(iter_leaves(trace))
    names = frozenset([*(tool.name for tool in trace.tools or ()), *(step.call.name for step in trace.steps)])
    keys = frozenset(extract_core(key) for key in (*names, *(leaf.key for leaf in leaves)))
    found = [value for value in list_sensitive(leaves, what) if value.core not in keys]
    return _assign_masks(found, {leaf.text for leaf in leaves} - names, names)


def _assign_masks(values: Sequence[Sensitive], texts: set[str], names: frozenset[str]) -> Masks:
    """Build masks and try them on every text: each must read back unchanged, and no stand-in may occur by chance."""
    tries = dict.fromkeys((value.core for value in values), 0)
    for _ in range(MAX_ATTEMPTS):
        masks = _number_masks(values, tries, names)
        clashes = _find_clashes(masks, texts)
        if not clashes:
            return masks
        for core in clashes:
            tries[core] += 1
    return _assign_masks([value for value in values if not tries[value.core]], texts, names)


def _number_masks(values: Sequence[Sensitive], tries: Mapping[str, int], names: frozenset[str]) -> Masks:
    """Pair each value with its first free stand-in, from the given attempt on."""
    taken = set(tries)
    forward: list[_Entry] = []
    for value in values:
        first = tries[value.core]
        made = (_make_stand_in(value, attempt) for attempt in range(first, first + MAX_ATTEMPTS))
        if (other := next((core for core in made if core not in taken), None)) is not None:
            taken.add(other)
            forward.append(_Entry(*value, other))
    backward = [_Entry(each.other, _dress_core(each.other, each.text), each.how, each.core) for each in forward]
    return Masks(_build_index(forward), _build_index(backward), names)


def _build_index(entries: Sequence[_Entry]) -> _Index:
    heads = frozenset(entry.core[:size] for entry in entries for size in (1, 2, 3))
    longest = max((len(entry.core) for entry in entries), default=0)
    return _Index({entry.core: entry for entry in entries}, heads, longest)


def _make_stand_in(value: Sensitive, attempt: int) -> str:
    """Return the letters and digits that replace the value's, in lower case."""
    core = value.core
    noise = b"".join(sha256(f"{attempt} {n} {core}".encode()).digest() for n in range(len(core) // 32 + 1))
    kept = 4 if 13 <= len(core) <= 19 and core.isdigit() and is_card(core) else 0  # characters at its end
    if "@" in value.text:
        kept = len(extract_core(value.text.rpartition(".")[2]))
    made = [_swap_char(c, byte, first=not n) for n, (c, byte) in enumerate(zip(core, noise, strict=False))]
    return "".join(made[: len(core) - kept]) + core[len(core) - kept :]


def _swap_char(c: str, byte: int, *, first: bool) -> str:
    if "0" <= c <= "9":
        if first:  # no new leading zero: a number must not get shorter
            return c if c == "0" else str(1 + byte % 9)
        return str(byte % 10)
    return chr(ord("a") + byte % 26) if "a" <= c <= "z" else c


def _find_clashes(masks: Masks, texts: set[str]) -> set[str]:
    """Return the values whose stand-ins occur in a text by chance, or are not found again where they were put."""
    clashing: set[str] = set()
    for text in texts:
        put = list(_find_places(text, masks.forward))
        found = list(_find_places(_replace_entries(text, masks.forward), masks.backward))
        clashing |= {entry.other for _, _, entry in _find_places(text, masks.backward)}
        if [place[:2] for place in put] != [place[:2] for place in found]:
            spans = {place[:2] for place in put}
            odd = {entry.other for start, stop, entry in found if (start, stop) not in spans}
            clashing |= odd or {entry.core for _, _, entry in put}
    return clashing


def _replace_entries(text: str, index: _Index) -> str:
    pieces: list[str] = []
    end = 0
    for start, stop, entry in _find_places(text, index):
        pieces += [text[end:start], _dress_core(entry.other, text[start:stop])]
        end = stop
    return "".join([*pieces, text[end:]]) if pieces else text


def _dress_core(core: str, shape: str) -> str:
    """Give these letters and digits the separators and the case of a text that has as many of them."""
    letters = iter(core)

    def dress(like: str) -> str:
        letter = next(letters)
        return letter.upper() if "A" <= like <= "Z" else letter

    return RUN.sub(lambda run: "".join(map(dress, run[0])), shape)


def _find_places(text: str, index: _Index) -> Iterator[tuple[int, int, _Entry]]:
    """Yield where entries occur in the text, left to right: whole runs of letters and digits, the longest entry first."""
    if not index.entries:
        return
    runs = [(match.start(), match.end(), match[0].translate(FOLD)) for match in RUN.finditer(text)]
    n = 0
    while n < len(runs):
        width, entry = _find_at(text, runs, n, index) if runs[n][2][:3] in index.heads else (1, None)
        if entry is not None:
            yield runs[n][0], runs[n + width - 1][1], entry
        n += width


def _find_at(text: str, runs: Sequence[tuple[int, int, str]], n: int, index: _Index) -> tuple[int, _Entry | None]:
    """Return how many runs the longest entry starting at run `n` takes, and the entry; (1, None) if there is none."""
    core, width, found = "", 1, None
    for size, (_, stop, run) in enumerate(runs[n : n + MAX_RUNS], 1):
        core += run
        if len(core) > index.longest:
            break
        entry = index.entries.get(core)
        if entry is not None and _is_meant(entry, text, runs[n][0], stop):
            width, found = size, entry
    return width, found


_GAP = re.compile(r"[^\W_][ ._/()+-]{1,2}(?=[^\W_])")


def _is_meant(entry: _Entry, text: str, start: int, stop: int) -> bool:
    """Whether this passage is the value itself, not part of a longer one and not an amount."""
    here = text[start:stop]
    if entry.how == "exact" or entry.text == here:
        spelt = entry.text == here
    elif entry.how == "folded":
        spelt = entry.text.translate(FOLD) == here.translate(FOLD)
    else:
        spelt = len(RUN.findall(here)) == len(_GAP.findall(here)) + 1
    is_mixed = not entry.core.isalpha() and not entry.core.isdigit()
    return spelt and (len(entry.core) >= 9 or is_mixed or _stands_alone(entry.core, text, start, stop))


_UNIT = re.compile(
    r"usd|eur|gbp|dollars?|cents?|euros?|pounds?|points?|items?|units?|percent|km|miles|kg|days|hours|minutes|seconds|years"
    r"|people|users|customers|orders",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"(?:[^\W_][-_@+]|\d[.,:/]|[$€£¥] ?|(?:USD|EUR|GBP) )\Z")
_AFTER = re.compile(r"[-_@+][^\W_]|[.,:/]\d| ?[%€£$]| ([A-Za-z]{1,9})\b")


def _stands_alone(core: str, text: str, start: int, stop: int) -> bool:
    """Whether a short run of digits or letters is neither part of something longer nor an amount."""
    if _BEFORE.search(text[max(0, start - 4) : start]):
        return False
    after = _AFTER.match(text, stop)
    if after is None:
        return True
    return after[1] is not None and not (core.isdigit() and _UNIT.fullmatch(after[1]))


def _rebuild(value: JsonValue, leaf: Callable[[JsonValue], JsonValue]) -> JsonValue:
    """Return a copy with each leaf passed through `leaf`."""
    if isinstance(value, Mapping):
        return {key: _rebuild(inner, leaf) for key, inner in value.items()}
    return [_rebuild(inner, leaf) for inner in value] if isinstance(value, list) else leaf(value)
