"""Words for how things stand: `delayed` told of what is on time, `credit card` of what was paid otherwise.

A field is read where its value is a word of one of the families here; others are not held against each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from service.core.evidence.narration.claims import NEGATED, is_open
from service.core.evidence.narration.entities import MAX_FAMILY, Family, narrow
from service.core.evidence.narration.fact_index import FactIndex
from service.core.evidence.narration.facts import Fact
from service.core.evidence.narration.statements import Statement, build_passage
from service.core.evidence.narration.verdicts import Ruling, Utterances, build_contradiction
from service.core.evidence.reading.words import flatten_text, split_words

_FAMILIES = """
processing=being processed=in processing, shipped=on its way=in transit=dispatched, delivered, cancelled=called off, refunded
pending, approved, rejected=declined=denied
pending, confirmed, cancelled=canceled
pending, completed, failed
on time=on schedule, delayed=running late, cancelled=canceled=called off, boarding, diverted
open, in progress=being worked on, waiting=on hold, resolved=solved, closed
finished=over, postponed=put off, live=under way=in progress
active, inactive, suspended, expired, frozen=blocked
low, medium, high, critical
available, sold out, out of stock, backordered
economy=economy class, premium economy, business=business class, first=first class
credit card, debit card, paypal, gift card, bank transfer, cash
accepted, tentative=not yet answered, declined
light snow=slight snowfall=snow=snowfall, sunny=clear and sunny, cloudy=overcast, rain=rainfall=rainy, fog=foggy
yellow, orange, red, green
gold, silver, bronze, platinum
checking, savings
"""
_STANDS = split_words("is are was were been be being s as status currently now still already with by")
_LATER = split_words("for will would can could once until when after before should expected if unless may might want")
MAX_CLAUSES, MAX_VALUES = 200, 500
"""Clauses of a text that are read, and values of a field that they are held against."""
_CLAUSE = re.compile(r"[^.;!?\n,|]++")


class _Status(NamedTuple):
    family: int
    name: str


def _read_families() -> dict[str, list[_Status]]:
    found: dict[str, list[_Status]] = {}
    for n, line in enumerate(_FAMILIES.strip().splitlines()):
        for member in line.split(", "):
            name, *others = member.split("=")
            for said in (name, *others):
                found.setdefault(flatten_text(said), []).append(_Status(n, name))
    return found


_STATUSES = _read_families()


def check_statuses(text: str, fact_index: FactIndex, utterances: Utterances) -> Iterator[Statement]:
    """Clauses that give a record another status than it has are suspected."""
    families = _list_fields(fact_index)
    for match in islice(_CLAUSE.finditer(text), MAX_CLAUSES) if families else ():
        flat = flatten_text(match.group())
        words = set(flat.split())
        if _LATER & words or NEGATED & words or is_open(match.group()) or text[match.end() : match.end() + 1] == "?":
            continue
        found = _find_said(flat)
        if len(found) == 1 and "respectively" not in words and not utterances.words(found[0]):
            yield from _check_said(text, match, found[0], families)


def _find_said(flat: str) -> list[str]:
    """The words of a clause for how a thing stands: after a form of `be`, or all of it."""
    found = [said for said in _STATUSES if said in flat]
    found = [said for said in found if said == flat or {*flat[: flat.find(said)].split()[-1:]} & _STANDS]
    return [said for said in found if not any(said != other and said.strip() in other for other in found)]


def _list_fields(fact_index: FactIndex) -> dict[int, Family]:
    """The fields all of whose values are of one family, by family; of families that two fields have, none."""
    found: dict[int, list[list[Fact]]] = {}
    for group in fact_index.groups.values():
        texts = {str(fact.value) for fact in group.facts[:MAX_FAMILY] if isinstance(fact.value, str)}
        if texts and len(texts) <= len(_STATUSES):
            held = [{one.family for one in _STATUSES.get(flatten_text(text), [])} for text in texts]
            for family in held[0].intersection(*held[1:]):
                found.setdefault(family, []).append(group.facts)
    return {
        family: Family(fields[0])
        for family, fields in found.items()
        if len(fields) == 1 and len(fields[0]) <= MAX_VALUES
    }


def _check_said(text: str, match: re.Match[str], said: str, families: dict[int, Family]) -> Iterator[Statement]:
    wrong: list[Statement] = []
    for status in _STATUSES[said]:
        family = families.get(status.family)
        if family is None:
            continue
        claim = build_passage(text, match.start(), match.end())
        narrowed = narrow(family, claim._replace(sentence=claim.sentence.replace(said.strip(), "")), text)
        held = {one.name for fact in narrowed.facts for one in _STATUSES.get(flatten_text(str(fact.value)), [])}
        if status.name in held or not narrowed.settled or narrowed.is_far or len(narrowed.facts) > 1:
            return
        ruling: Ruling = build_contradiction(claim, narrowed.facts[0], "wrong_status")
        wrong.append((claim, ruling._replace(verdict="suspected")))
    yield from wrong[:1]
