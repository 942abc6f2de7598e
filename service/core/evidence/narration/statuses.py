"""How things stand: a state that a text tells, where a field of the same sort holds another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from service.core.evidence.facts.facts import Fact
from service.core.evidence.facts.held import MAX_INSIDE, Holdings
from service.core.evidence.narration.verdicts import Saying, suspect
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import NEGATED
from service.core.evidence.sentences.mentions import Clause, follows_pronoun

_TABLE = """
pending, awaiting; processing, in processing, being processed, in preparation; shipped, on its way, in transit, dispatched,
 under way; delivered; returned; cancelled, canceled, called off
confirmed; waitlisted, on the waiting list; sold out; on sale; cancelled, canceled, called off
in progress, being worked on, ongoing; waiting, on hold, blocked; resolved, solved, completed, finished, closed; approved,
 accepted; rejected, declined, turned down, denied
free, available, vacant; busy, in use, occupied; out of order, faulty, broken, offline; reserved
paid, paid in full; unpaid, outstanding; overdue
on time; delayed; boarding; departed; landed; cancelled, canceled, called off
active, running, online; inactive, idle, stopped; suspended, paused; expired
"""
"""A sort of states in each line, from the first to the last that a thing passes; words for one state stand together."""
_FIELDS = split_words("status state stage phase condition availability")
_IS = r"(?:is|are|was|were|been|be|now|still|currently|already|stands|:|^|\|)"


class _State(NamedTuple):
    sort: int
    rank: int


def _build_table() -> dict[str, list[_State]]:
    found: dict[str, list[_State]] = {}
    for sort, line in enumerate(_TABLE.replace("\n ", " ").strip().splitlines()):
        for rank, words in enumerate(line.split(";")):
            for word in words.split(","):
                found.setdefault(word.strip(), []).append(_State(sort, rank))
    return found


_STATES = _build_table()
_SAID = re.compile(
    rf"{_IS}[\s*_]*(?P<state>{'|'.join(sorted(_STATES, key=len, reverse=True))})(?![\w-]| (?:to|by|for)\b)",
    re.IGNORECASE,
)


def check_statuses(clauses: Sequence[Clause], holdings: Holdings) -> Iterator[Saying]:
    """The states that clauses tell wrongly of what they speak of, or, where they name nothing, of all there is."""
    if not any(_FIELDS & {*fact.own} for fact in holdings.facts):
        return
    for clause in clauses:
        match = _SAID.search(clause.text)
        if match is None or NEGATED & {*clause.words}:
            continue
        facts = [fact for fact in _list_facts(clause, holdings) if _FIELDS & {*fact.own}]
        held = [_read_states(fact) for fact in facts]
        if not facts or not all(held) or not all(_excludes(match["state"], one, clause) for one in held):
            continue
        start = clause.start + match.start("state")
        ruling = suspect(match["state"], facts[0], "wrong_status")
        yield Saying(start, start + len(match["state"]), match["state"], ruling)


def _list_facts(clause: Clause, holdings: Holdings) -> Sequence[Fact]:
    if not clause.subjects:
        return holdings.facts
    sure = clause.sight in ("here", "before") or follows_pronoun(clause)
    return clause.subjects[0].inside[:MAX_INSIDE] if sure and len(clause.subjects) == 1 else ()


@lru_cache(maxsize=4096)
def _read_text(text: str) -> tuple[_State, ...]:
    return tuple(_STATES.get(" ".join(split_tokens(text)), ()))


def _read_states(fact: Fact) -> tuple[_State, ...]:
    return _read_text(fact.value) if isinstance(fact.value, str) else ()


def _excludes(said: str, held: Sequence[_State], clause: Clause) -> bool:
    """Whether a state is another of the same sort; one that was passed may be told of in the past."""
    past = bool({"was", "were", "been"} & {*clause.words})
    told = _read_text(said.lower())
    both = [(one, other) for one in told for other in held if one.sort == other.sort]
    return bool(both) and all(one != other and not (past and one.rank < other.rank) for one, other in both)
