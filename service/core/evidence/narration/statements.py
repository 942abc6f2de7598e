"""`Label: text` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from service.core.evidence.arithmetic.transforms import is_none
from service.core.evidence.facts.fact_index import FactIndex
from service.core.evidence.narration.entities import MAX_FAMILY, narrow
from service.core.evidence.narration.verdicts import OPEN, Ruling, Utterances, build_contradiction
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.stated import find_stated
from service.core.evidence.reading.words import flatten_text, split_tokens, split_words, stem_word
from service.core.evidence.sentences.claims import Claim

_LINE = re.compile(r"(?m)^[ \t>*_#`\d.)•-]*+([^:\n]{2,60}):[ \t*_`]*+([^\n]{2,60})$")
_NOTHING = split_words("none null nothing na unavailable")
Statement = tuple[Claim, Ruling]


def find_statements(text: str, fact_index: FactIndex, utterances: Utterances) -> Iterator[Statement]:
    """The statements of a text that name one field of one record, with the verdict on each."""
    for match in _LINE.finditer(text):
        yield from _check_labelled(text, match, fact_index, utterances)


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
