"""What code proves or suspects against the values of a text. A proof fails the text, a suspicion leaves it open.

Suspected are only classes that are rare in true answers and frequent in wrong ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import log10
from typing import NamedTuple

from service.core.grounding.action_words import SELF_MADE, list_verb_forms
from service.core.grounding.actions import OwnAction, admits_failure, find_completion, has_changed_something
from service.core.grounding.facts import Fact
from service.core.grounding.fields import MONEY_WORDS, split_name
from service.core.grounding.ground import Placed
from service.core.grounding.known import KnownFacts
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.reading.units import may_be_same_currency
from service.core.grounding.slips import is_slip, list_digits
from service.core.trace import Step, ToolDef

OTHER_VALUE = "other_value_than_done"
SUSPECTED_VALUE = "suspected_other_value"
SCALE_SLIP = "scale_slip"
SUSPECTED_SLIP = "suspected_slip"


class TextFinding(NamedTuple):
    """A finding against a stretch of a text, from character `start` up to `end`."""

    code: str
    message: str
    start: int
    end: int
    proved: bool
    source: str = ""
    """The pointer of what speaks against it."""


_TELLING = 4
_DIRECT = re.compile(
    r"(?:[ ](?:you|him|her|them|a|an|the|your|exactly|refund|transfer|payment|amount|total|of|for|over|dir|ihnen|euch|eine|einen"
    r"|den|die|das|erstattung|von|un|una|el|la|reembolso|de|vous|le|remboursement)){0,4}[ ]",
    re.IGNORECASE,
)
"""What may stand between the verb and the amount that it was done with."""


def find_other_values(
    text: str, placed: Sequence[Placed], actions: Sequence[OwnAction], known: KnownFacts
) -> Iterator[TextFinding]:
    """Yield a finding for each value in a statement of an own deed that its call did not have.

    Proved: an amount of money right after the verb, in the first person, where one call did it, and neither its arguments nor its
    result hold the amount, and no step of arithmetic leads to it. Suspected: a value in such a sentence that stands nowhere.
    """
    for action in actions:
        done = [step for step in action.steps if step.result is None or not step.result.is_error]
        for one in placed if done and action.tools else ():
            mention = one.mention
            if not action.first <= mention.start < action.last or mention.hedged or mention.ordinal:
                continue
            direct = mention.start > action.end and _DIRECT.fullmatch(text, action.end, mention.start) is not None
            held = _list_amounts(done[0], known) if direct and action.own and len(done) == 1 else []
            if (
                held
                and one.grounded.origin != "derived"
                and mention.dimension == "money"
                and not _is_held(mention, held)
            ):
                note = f"the text says {mention.text}, and {held[0].name or done[0].call.name} was {held[0].text}"
                yield TextFinding(OTHER_VALUE, note, mention.start, mention.end, proved=True, source=held[0].pointer)
            elif one.grounded.origin == "nowhere" and _says_enough(mention):
                note = f"the text says {mention.text} of what was done, and no call or result has it"
                yield TextFinding(SUSPECTED_VALUE, note, mention.start, mention.end, proved=False)


def _says_enough(mention: Mention) -> bool:
    """Whether a value that stands nowhere is more than a small number or the name of a weekday."""
    reading = mention.readings[0]
    return reading.kind in ("day", "time", "code") or bool(reading.dimension) or abs(reading.number) >= _TELLING


def _list_amounts(step: Step, known: KnownFacts) -> list[Fact]:
    """List the amounts of money in a call's arguments and its result, those known to be money first."""
    records = [places for record, places in known.store.records.items() if record.startswith(f"/steps/{step.index}/")]
    facts = [fact for places in records for place in places for fact in known.store.build(place)]
    own = [fact for fact in facts if fact.reading.kind == "number" and fact.whole]
    amounts = [fact for fact in own if fact.reading.dimension == "money"]
    return amounts + [fact for fact in own if not fact.reading.dimension and MONEY_WORDS & set(split_name(fact.name))]


def _is_held(mention: Mention, held: Sequence[Fact]) -> bool:
    for reading in mention.readings:
        for fact in held:
            sizes = (
                (fact.reading.number,) if fact.reading.dimension else (fact.reading.number, fact.reading.number / 100)
            )
            if any(abs(abs(size) - abs(reading.number)) <= reading.tolerance + 1e-9 for size in sizes):
                return may_be_same_currency(reading.currency, fact.reading.currency)
    return False


_POWERS = (100.0, 0.01, 10.0, 0.1, 1_000.0, 0.001)


def find_scale_slips(placed: Sequence[Placed], known: KnownFacts) -> Iterator[TextFinding]:
    """Yield a proof for each amount that is a held one with its decimal point moved: `amount_cents: 540000` told as `$54.00`.

    Only where the field's own name, its neighbours or the tool say that it counts the smallest unit; where the amount stands
    nowhere, is not derived and was not given; and where the text states the field's true amount nowhere.
    """
    stated = {source for one in placed for source in one.grounded.sources}
    for one in placed:
        if one.grounded.origin != "nowhere" or one.mention.hedged or one.mention.dimension != "money":
            continue
        fact = _find_moved(one, known)
        if fact is not None and fact.pointer not in stated:
            note = f"the text says {one.mention.text}, and {fact.name} is {fact.text} in the smallest unit"
            yield TextFinding(SCALE_SLIP, note, one.mention.start, one.mention.end, proved=True, source=fact.pointer)


def _find_moved(one: Placed, known: KnownFacts) -> Fact | None:
    reading = one.mention.readings[0]
    for power in _POWERS:
        for fact in known.list_around("money", abs(reading.number) * power, 2):
            moved = abs(fact.reading.number)
            same = abs(moved - abs(reading.number) * power) <= 1e-9 * moved
            if (
                fact.minor
                and fact.source == "result"
                and same
                and may_be_same_currency(reading.currency, fact.reading.currency)
            ):
                return fact
    return None


MIN_DIGITS = 3
"""The fewest digits of a number that can be suspected: one slip away from a shorter one is every other."""
MIN_CODE_CHARS = 5
_YEARS = range(1900, 2101)


def find_slips(placed: Sequence[Placed], known: KnownFacts) -> Iterator[TextFinding]:
    """Suspect the values of a text that stand nowhere, whose like stands in a result, one digit or character or one swap away.

    Not where the text states that other value too: then it is another thing.
    """
    stated = {source for one in placed for source in one.grounded.sources}
    for one in placed:
        if one.grounded.origin == "nowhere" and not (one.mention.hedged or one.may_be_derived):
            fact = _find_like(one.mention, known)
            if fact is not None and fact.pointer not in stated:
                note = (
                    f"the text says {one.mention.text}, which stands nowhere; {fact.name or 'a result'} is {fact.text}"
                )
                yield TextFinding(
                    SUSPECTED_SLIP, note, one.mention.start, one.mention.end, proved=False, source=fact.pointer
                )


def _find_like(mention: Mention, known: KnownFacts) -> Fact | None:
    code = next((one.value for one in mention.readings if one.kind == "code"), None)
    if isinstance(code, str) and len(code) >= MIN_CODE_CHARS:
        for held, fact in known.list_code_slips(code):
            neighbours = code.isdecimal() and held.isdecimal() and abs(int(code) - int(held)) <= 1
            if len(code) == len(held) and not neighbours and fact.source != "assistant":
                return fact
    reading = mention.readings[0]
    if reading.number == 0 or any(one.kind in ("day", "time") for one in mention.readings):
        return None
    dimensions = (reading.dimension, "") if reading.dimension else ("", "money")
    for dimension in dimensions:
        for fact in known.list_number_slips(list_digits(mention.text), dimension):
            if fact.source == "result" and _is_number_slip(mention, reading, fact):
                return fact
    return None


def _is_number_slip(mention: Mention, reading: Reading, fact: Fact) -> bool:
    """Whether the digits of a number are one slip from a held one, with the decimal point at the same place."""
    digits = list_digits(mention.text)
    if len(digits) < MIN_DIGITS or not fact.reading.number:
        return False
    if not reading.dimension and reading.number == reading.number // 1 and int(abs(reading.number)) in _YEARS:
        return False
    unit = reading.factor
    places = max(0, round(-log10(2 * reading.tolerance / unit))) if reading.tolerance else 0
    held = abs(fact.reading.number) / (unit if fact.reading.dimension else 1.0)
    cents = not fact.minor and reading.dimension == "money" and held == held // 1
    return any(
        _is_aligned_slip(abs(reading.written), one, places) for one in ((held, held / 100) if cents else (held,))
    )


def _is_aligned_slip(one: float, other: float, places: int) -> bool:
    """Whether two numbers differ by a slip, written with the same decimals; not where they are neighbours."""
    digits, like = (f"{value:.{places}f}".replace(".", "") for value in (one, other))
    return len(digits) == len(like) and is_slip(digits, like) and abs(one - other) > 1.5 * 10.0**-places


CODE = "claimed_action_not_taken"
SUSPECTED = "suspected_action_not_taken"
AFTER_ERROR = "claimed_success_after_error"


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
    passed; or verb and object name a tool on offer, the sentence names a value that stands in the trace, and no call has changed
    anything. Suspected: any other statement of a thing done where no call of such a tool succeeded; where it does not say who did
    it, only if no result tells of it either.
    """
    changed = has_changed_something(steps, tools)
    for action in actions:
        if action.state == "failed" and admits_failure(text):
            continue
        if action.state not in ("never_called", "failed") or (
            action.state == "never_called" and not action.tools and changed
        ):
            continue
        told = any(known.has_word(verb, of_results=True) for one in action.actions for verb in list_verb_forms(one))
        if action.own or not told or action.state == "failed":
            proved = action.own and not changed and not action.actions & SELF_MADE and _binds_value(action, placed)
            missing = (
                f"every call of {action.tools[0]} failed" if action.state == "failed" else "no call before it did that"
            )
            note = f"the text says {action.text!r}, and {missing}"
            yield TextFinding(CODE if proved else SUSPECTED, note, action.start, action.end, proved)


def _binds_value(action: OwnAction, placed: Sequence[Placed]) -> bool:
    """Whether a value in the sentence binds it to a call that failed or, with its object, to a tool that was not called."""
    inside = [one for one in placed if action.end <= one.mention.start < action.last and one.mention.kind != "weekday"]
    sources = [source for one in inside if one.grounded.origin in ("found", "given") for source in one.grounded.sources]
    if action.state == "failed":
        arguments = tuple([f"/steps/{step.index}/call/arguments/" for step in action.steps])
        return any(source.startswith(arguments) for source in sources)
    return action.named and bool(sources)


def find_completion_after_error(text: str, steps: Sequence[Step]) -> Iterator[TextFinding]:
    """Yield the suspicion that a text claims completion after what is likely an error, where no later call of the tool worked."""
    likely: dict[str, Step] = {}
    for step in steps:
        if step.result is not None and not step.result.is_error:
            likely.pop(step.call.name, None)
            if step.result.failure is not None:
                likely[step.call.name] = step
    done = find_completion(text) if likely and not admits_failure(text) else None
    for name, step in sorted(likely.items()) if done is not None else ():
        failure = step.result.failure if step.result is not None else None
        if failure is not None and done is not None:
            note = f"{name} seems to have failed ({failure.reason}), and the text claims completion"
            yield TextFinding(AFTER_ERROR, note, *done.span(), proved=False, source=failure.path)
