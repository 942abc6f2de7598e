"""Proof and suspicion: the assistant tells of its own deed with another value than the call had."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.core.grounding.actions import OwnAction
from service.core.grounding.fact_index import FactIndex
from service.core.grounding.facts import Fact
from service.core.grounding.fields import MONEY_WORDS, split_name
from service.core.grounding.findings import TextFinding
from service.core.grounding.ground import Placed
from service.core.grounding.reading.mentions import Mention
from service.core.grounding.reading.units import may_be_same_currency
from service.core.trace import Step

CODE = "other_value_than_done"
SUSPECTED = "suspected_other_value"
_TELLING = 4
_DIRECT = re.compile(
    r"(?:[ ](?:you|him|her|them|a|an|the|your|exactly|refund|transfer|payment|amount|total|of|for|over|dir|ihnen|euch|eine|einen"
    r"|den|die|das|erstattung|von|un|una|el|la|reembolso|de|vous|le|remboursement)){0,4}[ ]",
    re.IGNORECASE,
)
"""What may stand between the verb and the amount that it was done with."""


def find_other_values(
    text: str, placed: Sequence[Placed], actions: Sequence[OwnAction], index: FactIndex
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
            held = _list_amounts(done[0], index) if direct and action.own and len(done) == 1 else []
            if (
                held
                and one.grounded.origin != "derived"
                and mention.dimension == "money"
                and not _is_held(mention, held)
            ):
                note = f"the text says {mention.text}, and {held[0].name or done[0].call.name} was {held[0].text}"
                yield TextFinding(CODE, note, mention.start, mention.end, proved=True, source=held[0].pointer)
            elif one.grounded.origin == "nowhere" and _says_enough(mention):
                note = f"the text says {mention.text} of what was done, and no call or result has it"
                yield TextFinding(SUSPECTED, note, mention.start, mention.end, proved=False)


def _says_enough(mention: Mention) -> bool:
    """Whether a value that stands nowhere is more than a small number or the name of a weekday."""
    reading = mention.readings[0]
    return reading.kind in ("day", "time", "code") or bool(reading.dimension) or abs(reading.number) >= _TELLING


def _list_amounts(step: Step, index: FactIndex) -> list[Fact]:
    """List the amounts of money in a call's arguments and its result, those known to be money first."""
    prefix = f"/steps/{step.index}/"
    own = [fact for fact in index.iter_facts(prefix) if fact.reading.kind == "number" and fact.whole]
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
