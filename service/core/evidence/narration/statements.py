"""Claims that are no quantities: that something is or is not so, and `Label: text` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from service.core.evidence.narration.claims import NEGATED, Claim, is_open
from service.core.evidence.narration.entities import MAX_FAMILY, Family, NarrowedFacts, narrow
from service.core.evidence.narration.fact_index import FactIndex
from service.core.evidence.narration.transforms import is_none
from service.core.evidence.narration.verdicts import OPEN, Ruling, Utterances, build_contradiction
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.stated import find_stated
from service.core.evidence.reading.words import flatten_text, split_tokens, split_words, stem_word

_SENTENCE = re.compile(r"[^.!?;\n]++[.!?;]?")
_LINE = re.compile(r"(?m)^[ \t>*_#`\d.)•-]*+([^:\n]{2,60}):[ \t*_`]*+([^\n]{2,60})$")
_IS = split_words("is are was were be been being s re has have had isn aren wasn weren hasn haven")
_FILLER = split_words("is has was are flag be been")
_PARTLY = split_words(
    "of only some most both all each except other others any either if unless one two three four five"
)
"""Words of sentences that say of several things how many are so."""
_NOTHING = split_words("none null nothing na unavailable")
_OPPOSITE = ("un", "in", "non", "im", "dis")
REACH = 4
"""Words between `is` and what it is said to be."""

Statement = tuple[Claim, Ruling]


def find_statements(text: str, fact_index: FactIndex, utterances: Utterances) -> Iterator[Statement]:
    """The statements of a text that name one field of one record, with the verdict on each."""
    truths = _list_truths(fact_index)
    for match in _SENTENCE.finditer(text) if truths else ():
        sentence = match.group()
        if not sentence.endswith("?") and not is_open(sentence):
            yield from _check_truth(text, match, truths)
    for match in _LINE.finditer(text):
        yield from _check_labelled(text, match, fact_index, utterances)


def _list_truths(fact_index: FactIndex) -> dict[str, Family]:
    """The fields that are true or false, by the one word that names them."""
    found: dict[str, Family] = {}
    for group in fact_index.groups.values():
        words = group.own - _FILLER
        if len(words) == 1 and "boolean" in group.kinds and len(group.facts) <= MAX_FAMILY:
            facts = [fact for fact in group.facts if isinstance(fact.value, bool)]
            if facts:
                found.setdefault(min(words), Family(facts))
    return found


def _check_truth(text: str, match: re.Match[str], truths: dict[str, Family]) -> Iterator[Statement]:
    words, seen = split_tokens(match.group()), {""}
    for at, word in enumerate(words):
        name, said = _find_field(word, truths)
        before = words[max(0, at - REACH) : at]
        if name not in seen and _IS & set(before) and not _PARTLY & set(words):
            seen.add(name)
            claim = build_passage(text, match.start(), match.end())
            near = {
                *takewhile(_is_no_joint, reversed(before)),
                *takewhile(_is_no_joint, words[at + 1 : at + 1 + REACH]),
            }
            yield from _check_held(claim, narrow(truths[name], claim, text), said is not bool(NEGATED & near))


def _is_no_joint(word: str) -> bool:
    return word not in ("and", "but", "while")


def _find_field(word: str, truths: dict[str, Family]) -> tuple[str, bool]:
    """The field that a word names, and whether it says so or the opposite: `paid`, `unpaid`."""
    if stem_word(word) in truths:
        return stem_word(word), True
    for prefix in _OPPOSITE:
        if word.startswith(prefix) and word[len(prefix) :] in truths:
            return word[len(prefix) :], False
    return "", True


def _check_held(claim: Claim, narrowed: NarrowedFacts, said: bool) -> Iterator[Statement]:  # noqa: FBT001
    held = {fact.value is True for fact in narrowed.facts}
    if narrowed.settled and len(held) == 1:
        fact = narrowed.facts[0]
        yield (
            claim,
            Ruling("supported", fact.pointer, "words")
            if held == {said}
            else build_contradiction(claim, fact, "negation"),
        )


def build_passage(text: str, start: int, end: int) -> Claim:
    """A passage as a claim, for finding its record."""
    said = text[start:end]
    start, said = start + len(said) - len(said.lstrip()), said.strip()
    quantity = Quantity("name", said, "", start, start + len(said), said)
    line = text.rfind("\n", 0, start + 1) + 1
    dates = tuple(q._replace(start=q.start + start, end=q.end + start) for q in find_stated(said) if q.kind == "date")
    return Claim(quantity, said, (), exact=False, plain=True, line_start=line, sentence_start=start, dates=dates)


def _check_labelled(
    text: str, match: re.Match[str], fact_index: FactIndex, utterances: Utterances
) -> Iterator[Statement]:
    """A line such as `Cabin: economy` where the field holds a text: it, or that of another record."""
    label, said = [stem_word(word) for word in split_tokens(match.group(1))], flatten_text(match.group(2))
    claim = build_passage(text, match.start(2), match.end(2))
    groups = [group for group in fact_index.find_named(label, claim.quantity) if set(label) <= group.own | group.above]
    family = fact_index.build_family(groups)
    if not 0 < len(family.facts) <= MAX_FAMILY or not said.strip() or any(c.isdigit() for c in said):
        return
    narrowed = narrow(family, claim, text)
    if not all(fact.value is None or isinstance(fact.value, str) for fact in narrowed.facts):
        return
    held = {flatten_text(str(fact.value)) for fact in narrowed.facts}
    fact = narrowed.facts[0]
    if any(one.strip() and (said in one or one in said) for one in held):
        yield claim, Ruling("supported", fact.pointer, "words")
    elif said.strip() in _NOTHING and all(is_none(fact) for fact in narrowed.facts):
        yield claim, Ruling("supported", fact.pointer, "none")
    elif (
        narrowed.settled and len(held) == 1 and any(flatten_text(str(other.value)) == said for other in narrowed.others)
    ):
        yield (
            claim,
            OPEN if utterances.words(claim.quantity.text) else build_contradiction(claim, fact, "swapped_entity"),
        )
