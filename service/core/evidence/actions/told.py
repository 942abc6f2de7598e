"""Check what the assistant says it has done against the calls it made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from service.core.evidence.actions.verbs import CERTAIN, DONE, list_actions, list_objects, may_act, only_reads
from service.core.evidence.narration.verdicts import ClaimVerdict
from service.core.evidence.reading.words import split_name, split_tokens, split_words, stem_word
from service.core.json.leaves import list_leaves
from service.core.trace import Step, ToolDef

CLAIMED_ACTION = "claimed_action_not_taken"
"""Code for a claimed action that no call supports."""

_FORMS = "|".join(sorted([form for form in CERTAIN if form.endswith(("ed", "t", "d"))], key=len, reverse=True))
_ADVERBS = r"(?:(?:now|just|also|already|successfully|gone ahead and|went ahead and) ){0,2}"
_CLAIM = re.compile(
    rf"\b(?:(?P<own>I(?: have|['\u2019]ve)?) {_ADVERBS}(?P<act>[a-z]++)"
    rf"|(?:(?:has|have) been|is now) {_ADVERBS}(?P<verb>{_FORMS})\b)"
    r"(?! (?:no|none|nothing|nobody)\b|(?<=ordered)(?: \w+){1,4} by\b|(?<=returned)(?: \w+){1,4} below\b| the order of\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]++[.!?]?")
_DISCLAIMERS = split_words(
    "if once when after until before unless should would will could can may might not never "
    "no none nothing nobody neither t whether assuming suppose"
)
"""Words before a claim that mean it is not one."""
_OBJECT_WORDS = 12
"""Words after the verb that are searched for the object of the action."""
MAX_CLAIMS = 100
_MAX_READ = 500
"""Characters read of each text in a result."""


class ToldActions:
    """Tracks what the calls so far changed or may have changed, and checks claims of actions against it."""

    def __init__(self, tools: Iterable[ToolDef] | None) -> None:
        self._tools: Mapping[str, ToolDef] = {tool.name: tool for tool in tools or ()}
        self._actions: set[str] = set()
        """The actions of successful calls, as the verbs in their tools' names."""
        self._may_have_acted = False
        """Whether a call may have changed something unknown."""
        self._mentioned: set[str] = set()
        """The actions that results mention, whoever took them."""

    def add(self, step: Step) -> None:
        """Add a step with its result."""
        name, result = step.call.name, step.result
        for leaf in list_leaves(result.content, limit=500) if result is not None else ():
            words = split_tokens(leaf.value[:_MAX_READ]) if isinstance(leaf.value, str) else []
            words += split_name(leaf.key) if leaf.value else ()
            self._mentioned.update([DONE[word] for word in words if word in DONE])
        if only_reads(name, self._tools.get(name)) or (result is not None and result.is_error):
            return
        actions = list_actions(name)
        self._may_have_acted = self._may_have_acted or result is None or result.failure is not None or not actions
        self._actions |= actions

    def check(self, text: str, path: str) -> tuple[ClaimVerdict, ...]:
        """Return a verdict for each action that a text claims and no call took."""
        return tuple(self._iter_missing(text, path)) if self._tools else ()

    def _iter_missing(self, text: str, path: str) -> Iterator[ClaimVerdict]:
        claims = (claim for claim in _CLAIM.finditer(text) if claim["verb"] or may_act(claim["act"].lower()))
        for claim in islice(claims, MAX_CLAIMS):
            action = DONE.get((claim["verb"] or claim["act"]).lower(), "")
            if action in self._actions or self._may_have_acted or _is_open(text, claim):
                continue
            capable = [
                name
                for name, tool in sorted(self._tools.items())
                if (action in list_actions(name) or not action) and not only_reads(name, tool)
            ]
            # Another call may have done it along the way, where no tool is made for it or the text does not say who did it.
            if not self._actions if action else capable and not self._actions:
                yield from self._judge(text, path, claim, action, capable if action else [])
            elif action and capable and claim["own"]:
                yield from self._judge(text, path, claim, action, capable)

    def _judge(
        self, text: str, path: str, claim: re.Match[str], action: str, capable: list[str]
    ) -> Iterator[ClaimVerdict]:
        if not claim["own"] and action in self._mentioned:
            return
        words = {stem_word(word) for word in split_tokens(text[claim.end() :].partition("\n")[0])[:_OBJECT_WORDS]}
        matching = [name for name in capable if list_objects(name) & words]
        sure = bool(matching and claim["own"]) and not self._actions and action in CERTAIN
        missing = f"no call of {matching[0]} succeeded" if matching else "no call that does so succeeded"
        note = f"the text says {claim.group()!r}, and {missing} before it"
        verdict = "contradicted" if sure else "suspected"
        yield ClaimVerdict(path, *claim.span(), claim.group(), verdict, None, None, CLAIMED_ACTION, note)


def _is_open(text: str, claim: re.Match[str]) -> bool:
    """Whether the words before the claim make it conditional or negated, or its sentence is a question."""
    start = max(text.rfind(mark, 0, claim.start()) for mark in ".!?\n") + 1
    end = _SENTENCE.match(text, claim.start())
    asks = end is not None and end.group().endswith("?")
    return asks or bool(_DISCLAIMERS & set(split_tokens(text[start : claim.start()])))
