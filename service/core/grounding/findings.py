"""What code proves or suspects against the values of a text. A proof fails the text, a suspicion leaves it open.

Suspected are only classes that are rare in true answers and frequent in wrong ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import log10
from typing import NamedTuple, cast

from service.core.grounding.actions import (
    SELF_MADE,
    OwnAction,
    admits_failure,
    find_completion,
    has_changed_something,
    is_denied,
    list_verb_forms,
)
from service.core.grounding.facts import Fact
from service.core.grounding.ground import Placed
from service.core.grounding.known import KnownFacts
from service.core.grounding.reading.languages import DATA
from service.core.grounding.reading.mentions import Mention, Reading, is_slip, list_digits
from service.core.grounding.reading.units import may_be_same_currency
from service.core.trace import Step, ToolDef

MIN_DIGITS = 3
"""The fewest digits of a number that can be suspected: one slip away from a shorter one is every other."""
MIN_CODE_CHARS = 5
_TELLING = 4
"""Smaller counts tell nothing: `two`, `3 reminders`."""
_YEARS = range(1900, 2101)
_SCALES = (100.0, 0.01)
"""What an amount in the smallest unit is off by if it is not converted, or converted twice."""
_RATE = re.compile(rf"[ ]?(?:/|(?:{cast('str', DATA['rates']).replace(' ', '|')})\b)", re.IGNORECASE)
_DIRECT = re.compile(rf"(?:[ ](?:{cast('str', DATA['direct']).replace(' ', '|')})){{0,4}}[ ]", re.IGNORECASE)


class TextFinding(NamedTuple):
    """A finding against a stretch of a text, from character `start` up to `end`."""

    code: str
    message: str
    start: int
    end: int
    proved: bool
    source: str = ""
    """The pointer of what speaks against it."""


def find_other_values(
    text: str, placed: Sequence[Placed], actions: Sequence[OwnAction], known: KnownFacts
) -> Iterator[TextFinding]:
    """Yield a finding for each value in a statement of an own deed that its call did not have.

    Proved: an amount of money right after the verb, in the first person, where one call did it, whose arguments and result hold
    it with its decimal point elsewhere, and the sentence names neither the true one nor a factor. Suspected: any other amount
    there to which no step of arithmetic leads, and a value in such a sentence that stands nowhere.
    """
    for action in actions:
        done = [step for step in action.steps if step.result is None or not step.result.is_error]
        inside = [one for one in placed if action.first <= one.mention.start < action.last] if action.tools else ()
        for mention, grounded, _ in inside if done else ():
            start, end, reading = mention.start, mention.end, mention.readings[0]
            if mention.hedged or mention.ordinal:
                continue
            direct = start > action.end and _DIRECT.fullmatch(text, action.end, start) and reading.dimension == "money"
            sole = action.own and len(done) == 1 and direct and grounded.origin != "derived"
            held = _list_amounts(done[0], known) if sole else []
            told = [one for each in inside for one in each.mention.readings]
            told += [reading._replace(value=reading.number * one.number) for one in told if one.kind == "number"]
            if held and not any(_is_amount(one, fact) for one in told for fact in held):
                moved = next((fact for fact in held if _is_moved(reading, fact)), None)
                fact, code = moved or held[0], "other_value_than_done" if moved else "suspected_other_value"
                note = f"the text says {mention.text}, and {fact.name or done[0].call.name} was {fact.text}"
                yield TextFinding(code, note, start, end, proved=moved is not None, source=fact.pointer)
            elif grounded.origin == "nowhere" and (
                reading.kind != "number" or reading.dimension or abs(reading.number) >= _TELLING
            ):
                note = f"the text says {mention.text} of what was done, and no call or result has it"
                yield TextFinding("suspected_other_value", note, start, end, proved=False)


def _list_amounts(step: Step, known: KnownFacts) -> list[Fact]:
    """List the amounts of money in a call's arguments and its result."""
    records = known.store.records
    places = [place for record in records if record.startswith(f"/steps/{step.index}/") for place in records[record]]
    own = [fact for place in places for fact in known.store.build(place) if fact.whole]
    return [fact for fact in own if fact.reading.dimension == "money"]


def _is_amount(reading: Reading, fact: Fact) -> bool:
    """Whether a field has an amount."""
    same = abs(abs(fact.reading.number) - abs(reading.number)) <= reading.tolerance + 1e-9
    return same and may_be_same_currency(reading.currency, fact.reading.currency)


def _is_moved(reading: Reading, fact: Fact) -> bool:
    """Whether an amount has the digits of a field, and its decimal point elsewhere: by two places, or in three digits or more."""
    said, held = (f"{abs(each.number):.2f}" for each in (reading, fact.reading))
    digits, others = (each.replace(".", "").strip("0") for each in (said, held))
    return digits == others and (len(digits) >= MIN_DIGITS or float(said) in (float(held) * one for one in _SCALES))


def find_scale_slips(text: str, placed: Sequence[Placed], known: KnownFacts) -> Iterator[TextFinding]:
    """Yield a finding for each amount that is a held one with its decimal point moved: `amount_cents: 540000` told as `$54.00`.

    Only where the field's own name, its neighbours or the tool say that it counts the smallest unit; where the amount stands
    nowhere, is not derived, was not given and is not denied; and where the text states the field's true amount nowhere. Proved,
    but for a rate (`$54.00 a year`), which is suspected.
    """
    stated = {source for one in placed for source in one.grounded.sources}
    for mention, grounded, _ in placed:
        if grounded.origin == "nowhere" and mention.dimension == "money" and not mention.hedged:
            reading = mention.readings[0]
            moved = [reading._replace(value=reading.number * scale, tolerance=0.0) for scale in _SCALES]
            held = [one for each in moved for one in known.find(each, limit=16)]
            fact = next((one for one in held if one.minor and one.source == "result"), None)
            if fact is None or fact.pointer in stated or is_denied(text, mention.start):
                continue
            proved = not _RATE.match(text, mention.end)
            note = f"the text says {mention.text}, and {fact.name} is {fact.text} in the smallest unit"
            code = "scale_slip" if proved else "suspected_slip"
            yield TextFinding(code, note, mention.start, mention.end, proved, source=fact.pointer)


def find_slips(placed: Sequence[Placed], known: KnownFacts) -> Iterator[TextFinding]:
    """Suspect the values of a text that stand nowhere, whose like stands in a result, one digit or character or one swap away.

    Not where the text states that other value too: then it is another thing.
    """
    stated = {source for one in placed for source in one.grounded.sources}
    for mention, grounded, may_be_derived in placed:
        if grounded.origin == "nowhere" and not (mention.hedged or may_be_derived):
            fact = _find_like(mention, known)
            if fact is not None and fact.pointer not in stated:
                note = f"the text says {mention.text}, which stands nowhere; {fact.name or 'a result'} is {fact.text}"
                yield TextFinding("suspected_slip", note, mention.start, mention.end, proved=False, source=fact.pointer)


def _find_like(mention: Mention, known: KnownFacts) -> Fact | None:
    code = next((one.value for one in mention.readings if one.kind == "code"), None)
    if isinstance(code, str) and len(code) >= MIN_CODE_CHARS:
        for held, fact in known.list_code_slips(code):
            neighbours = code.isdecimal() and held.isdecimal() and abs(int(code) - int(held)) <= 1
            if len(code) == len(held) and not neighbours and fact.source != "assistant":
                return fact
    reading, digits = mention.readings[0], list_digits(mention.text)
    is_year = not reading.dimension and abs(reading.number) in _YEARS
    is_moment = any(one.kind in ("day", "time") for one in mention.readings)
    if not reading.number or len(digits) < MIN_DIGITS or is_year or is_moment:
        return None
    near = [
        fact
        for dim in ((reading.dimension, "") if reading.dimension else ("", "money"))
        for fact in known.list_number_slips(digits, dim)
    ]
    return next((fact for fact in near if fact.source == "result" and _is_number_slip(reading, fact)), None)


def _is_number_slip(reading: Reading, fact: Fact) -> bool:
    """Whether the digits of a number are one slip from a held one, with as many decimals; not where they are neighbours."""
    unit = reading.factor
    places = max(0, round(-log10(2 * reading.tolerance / unit))) if reading.tolerance else 0
    held = abs(fact.reading.number) / (unit if fact.reading.dimension else 1.0)
    cents = not fact.minor and reading.dimension == "money" and held == held // 1
    said = abs(reading.written)
    for like in (held, held / 100) if cents else (held,):
        digits, others = (f"{size:.{places}f}".replace(".", "") for size in (said, like))
        if held and len(digits) == len(others) and is_slip(digits, others) and abs(said - like) > 1.5 * 10.0**-places:
            return True
    return False


def find_false_actions(
    text: str,
    placed: Sequence[Placed],
    actions: Sequence[OwnAction],
    steps: Sequence[Step],
    tools: Mapping[str, ToolDef],
    known: KnownFacts,
) -> Iterator[TextFinding]:
    """Yield a finding for each action that a text claims and no call before it took.

    Proved, in the first person alone: every call that would have done it failed, and the sentence names a value that one of them
    passed; or verb and object name a tool on offer, the sentence names a value that stands in the trace, no call has changed
    anything, and nobody before used the word, as for a deed that is older than the trace. Suspected: any other statement of a
    thing done where no call of such a tool succeeded; where it does not say who did it, only if no result tells of it either.
    """
    changed = has_changed_something(steps, tools)
    for action in actions:
        failed = action.state == "failed"
        untaken = action.state == "never_called" and (action.tools or not changed)
        if not untaken and not (failed and not admits_failure(text)):
            continue
        verbs = [verb for one in action.actions for verb in list_verb_forms(one)]
        if action.own or failed or not any(known.has_word(verb, of_results=True) for verb in verbs):
            told = any(known.has_word(word) for word in action.text.lower().split() if word in verbs)
            proved = action.own and not (changed or told or action.actions & SELF_MADE) and _binds_value(action, placed)
            missing = f"every call of {action.tools[0]} failed" if failed else "no call before it did that"
            code = "claimed_action_not_taken" if proved else "suspected_action_not_taken"
            yield TextFinding(code, f"the text says {action.text!r}, and {missing}", action.start, action.end, proved)


def _binds_value(action: OwnAction, placed: Sequence[Placed]) -> bool:
    """Whether a value in the sentence binds it to a call that failed or, with its object, to a tool that was not called."""
    inside = [one.grounded for one in placed if action.end <= one.mention.start < action.last]
    sources = [source for one in inside if one.origin in ("found", "given") for source in one.sources]
    if action.state == "failed":
        arguments = tuple([f"/steps/{step.index}/call/arguments/" for step in action.steps])
        return any(source.startswith(arguments) for source in sources)
    return action.named and bool(sources)


def find_completion_after_error(text: str, steps: Sequence[Step]) -> Iterator[TextFinding]:
    """Yield the suspicion that a text claims completion after what is likely an error, where no later call of the tool worked."""
    last = {step.call.name: step.result for step in steps if step.result is not None and not step.result.is_error}
    likely = {name: result.failure for name, result in sorted(last.items()) if result.failure is not None}
    done = find_completion(text) if likely and not admits_failure(text) else None
    for name, failure in likely.items() if done is not None else ():
        note = f"{name} seems to have failed ({failure.reason}), and the text claims completion"
        start, end = cast("re.Match[str]", done).span()
        yield TextFinding("claimed_success_after_error", note, start, end, proved=False, source=failure.path)
