"""What the assistant says that it has done, held against its calls."""

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
"""The code of a claim that no call bears out."""

_FORMS = "|".join(sorted([form for form in CERTAIN if form.endswith(("ed", "t", "d"))], key=len, reverse=True))
_ADVERBS = r"(?:(?:now|just|also|already|successfully|gone ahead and|went ahead and) ){0,2}"
_CLAIM = re.compile(
    rf"\b(?:(?P<own>I(?: have|['\u2019]ve)?) {_ADVERBS}(?P<act>[a-z]++)"
    rf"|(?:(?:has|have) been|is now) {_ADVERBS}(?P<verb>{_FORMS})\b)"
    r"(?! (?:no|none|nothing|nobody)\b|(?<=ordered)(?: \w+){1,4} by\b|(?<=returned)(?: \w+){1,4} below\b| the order of\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]++[.!?]?")
_OPEN = split_words(
    "if once when after until before unless should would will could can may might not never "
    "no none nothing nobody neither t whether assuming suppose"
)
"""Words before a claim that make it none."""
_REACH = 12
"""Words after the verb among which the thing is named."""
MAX_CLAIMS = 100
_MAX_READ = 500
"""Characters of a text in a result."""


class ToldActions:
    """The calls so far, as what is told of them is held against: which changed something, and which may have."""

    def __init__(self, tools: Iterable[ToolDef] | None) -> None:
        self._tools: Mapping[str, ToolDef] = {tool.name: tool for tool in tools or ()}
        self._done: set[str] = set()
        """What successful calls did, by the verbs of their tools."""
        self._may_have = False
        """Whether a call may have changed something, though nobody can say what."""
        self._heard: set[str] = set()
        """What results say was done, by anybody."""

    def add(self, step: Step) -> None:
        """A step with its result."""
        name, result = step.call.name, step.result
        for leaf in list_leaves(result.content, limit=500) if result is not None else ():
            words = split_tokens(leaf.value[:_MAX_READ]) if isinstance(leaf.value, str) else []
            words += split_name(leaf.key) if leaf.value else ()
            self._heard.update([DONE[word] for word in words if word in DONE])
        if only_reads(name, self._tools.get(name)) or (result is not None and result.is_error):
            return
        actions = list_actions(name)
        self._may_have = self._may_have or result is None or result.failure is not None or not actions
        self._done |= actions

    def check(self, text: str, path: str) -> tuple[ClaimVerdict, ...]:
        """The verdicts against a text that claims what was not done."""
        return tuple(self._iter_missing(text, path)) if self._tools else ()

    def _iter_missing(self, text: str, path: str) -> Iterator[ClaimVerdict]:
        claims = (claim for claim in _CLAIM.finditer(text) if claim["verb"] or may_act(claim["act"].lower()))
        for claim in islice(claims, MAX_CLAIMS):
            action = DONE.get((claim["verb"] or claim["act"]).lower(), "")
            if action in self._done or self._may_have or _is_open(text, claim):
                continue
            does = [
                name
                for name, tool in sorted(self._tools.items())
                if (action in list_actions(name) or not action) and not only_reads(name, tool)
            ]
            # What another call did may include it: with no tool of its own, or in words that name nobody.
            if not self._done if action else does and not self._done:
                yield from self._judge(text, path, claim, action, does if action else [])
            elif action and does and claim["own"]:
                yield from self._judge(text, path, claim, action, does)

    def _judge(
        self, text: str, path: str, claim: re.Match[str], action: str, does: list[str]
    ) -> Iterator[ClaimVerdict]:
        if not claim["own"] and action in self._heard:
            return
        words = {stem_word(word) for word in split_tokens(text[claim.end() :].partition("\n")[0])[:_REACH]}
        named = [name for name in does if list_objects(name) & words]
        sure = bool(named and claim["own"]) and not self._done and action in CERTAIN
        missing = f"no call of {named[0]} succeeded" if named else "no call that does so succeeded"
        note = f"the text says {claim.group()!r}, and {missing} before it"
        verdict = "contradicted" if sure else "suspected"
        yield ClaimVerdict(path, *claim.span(), claim.group(), verdict, None, None, CLAIMED_ACTION, note)


def _is_open(text: str, claim: re.Match[str]) -> bool:
    """Whether the sentence leaves it open, up to the claim, or asks."""
    start = max(text.rfind(mark, 0, claim.start()) for mark in ".!?\n") + 1
    end = _SENTENCE.match(text, claim.start())
    asks = end is not None and end.group().endswith("?")
    return asks or bool(_OPEN & set(split_tokens(text[start : claim.start()])))
