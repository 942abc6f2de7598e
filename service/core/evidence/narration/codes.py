"""Suspect codes in a form that results use, where neither a result nor anybody else gave that code: `H-17` beside `H-07`.

A form is a code with its digits left open: `H-07` is of the form `H-00`, `2026-0418` of `0000-0000`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from service.core.evidence.facts.entities import Holdings
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.verdicts import Ruling, Saying, Utterances, suspect
from service.core.evidence.reading.words import flatten_text, split_tokens
from service.core.evidence.sentences.claims import DENYING
from service.core.evidence.sentences.mentions import Clause, announces

MAX_FORMS, MAX_CODE = 60, 30
"""Limits on the forms that are searched for, and on the characters of a code."""
_CODE = re.compile(r"(?=.*\d)[#+]?[A-Z0-9]+(?:[-./ ][A-Z0-9]+){0,4}")
_NUMBERED = re.compile(r"(?<![\w#&])#(\d{2,9})\b(?![.,]\d)")
_AMOUNT = re.compile(r"0+ [A-Z]{1,4}|0[A-Z]")
"""A number with a unit: `12 KG`, `5G`."""
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[A-Z]")
_VALUES = frozenset({"date", "time", "money", "measure", "duration", "percent"})
"""What a text of letters and digits may be instead of a code."""
MIN_DIGITS_ALONE = 5
"""Fewest digits of a code without letters that is joined once."""


def check_codes(text: str, clauses: Sequence[Clause], holdings: Holdings, utterances: Utterances) -> Iterator[Saying]:
    """Yield a suspicion for each code that has the form of held ones, is none of them, and that nobody gave."""
    forms = holdings.once(check_codes, lambda: _list_forms(holdings))
    for clause in clauses:
        if not any(c.isdigit() for c in clause.text) or announces(clause.sentence):
            continue
        if DENYING & {*split_tokens(clause.text)} or clause.sentence.rstrip().endswith("?"):
            continue
        for pattern, fact in forms:
            for match in pattern.finditer(text, clause.start, clause.end):
                if not _is_known(match.group(), holdings, utterances):
                    ruling = suspect(match.group(), fact, "not_found")._replace(words=None)
                    yield Saying(*match.span(), match.group(), ruling)
    yield from _check_numbered(text, holdings, utterances)


def _check_numbered(text: str, holdings: Holdings, utterances: Utterances) -> Iterator[Saying]:
    """Yield a suspicion for `#1496` if nothing has that number although results have that of another `#` of the text."""
    found = [*_NUMBERED.finditer(text)]
    known = [_is_known(one[1], holdings, utterances) for one in found]
    for one, is_known in zip(found, known, strict=True):
        if not is_known and any(known):
            note = f"the text says {one.group()}, and neither a result nor anything said before has that number"
            yield Saying(*one.span(1), one[1], Ruling("suspected", None, None, "not_found", note, None))


def _list_forms(holdings: Holdings) -> list[tuple[re.Pattern[str], Fact]]:
    """List the forms of held codes, each with the first fact of that form."""
    found: dict[str, dict[str, Fact]] = {}
    for fact in holdings.facts:
        if isinstance(fact.value, str) and len(fact.value) <= MAX_CODE and _CODE.fullmatch(fact.value):
            form = _DIGIT.sub("0", fact.value) if _VALUES.isdisjoint(held.kind for held in fact.quantities) else ""
            found.setdefault(form, {}).setdefault(fact.value, fact)
    telling = [(form, facts) for form, facts in found.items() if _is_telling(form, len(facts))]
    return [(_build_pattern(form), next(iter(facts.values()))) for form, facts in telling[:MAX_FORMS]]


def _is_telling(form: str, number: int) -> bool:
    """Whether a text in this form is hardly anything but such a code."""
    digits, joints = form.count("0"), len(re.findall(r"[-./ ]", form))
    if _AMOUNT.fullmatch(form):
        return False
    if _LETTER.search(form):
        return digits > 1 or joints > 0 or number > 1
    return joints > 1 or (joints == 1 and "." not in form and digits >= MIN_DIGITS_ALONE)


def _build_pattern(form: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.+-]){re.escape(form).replace('0', '[0-9]')}(?![\w-]|\.\w)")


def _is_known(code: str, holdings: Holdings, utterances: Utterances) -> bool:
    words = flatten_text(code).strip()
    return f" {words} " in holdings.once(_is_known, lambda: _join_texts(holdings)) or utterances.words(code)


def _join_texts(holdings: Holdings) -> str:
    """Join all texts and names of fields, and all whole numbers."""
    names = {name for path in holdings.by_path for name in path}
    values = (str(fact.value) for fact in holdings.facts if not isinstance(fact.value, bool | float))
    return " ".join(flatten_text(text) for text in chain(names, values))
