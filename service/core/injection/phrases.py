"""Phrases that attacks on a reader have in common, as regular expressions over lower-case text.

Every gap is bounded, so each start costs a bounded amount and a search takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class PhraseGroup(NamedTuple):
    """Patterns for one kind of attack, and anchors: a text without any of these words matches no pattern."""

    patterns: tuple[re.Pattern[str], ...]
    anchors: frozenset[str]

    def find_in(self, text: str, present: Sequence[str]) -> re.Match[str] | None:
        """Return the match of the first pattern found in a text. `present`: the anchors in it, perhaps with others."""
        if self.anchors.isdisjoint(present):
            return None
        return next(filter(None, (pattern.search(text) for pattern in self.patterns)), None)


def _compile_phrases(patterns: Sequence[str], *anchors: str) -> PhraseGroup:
    return PhraseGroup(tuple([re.compile(pattern) for pattern in patterns]), frozenset(anchors))


_GAP = r"(?:[\w'/-]{1,20} ){0,4}"
_FEW = r"(?:[\w-]{1,20} ){0,2}"
_JUDGE = (
    r"(?:(?:llm|ai|automated|automatic|external|impartial) )?"
    r"(?:judges?|graders?|evaluators?|raters?|scorers?|assessors?)"
)
_TEXT = (
    r"(?:answer|response|reply|output|trajectory|trace|transcript|tool call|call|conversation|submission|result|agent"
    r"|assistant|model)"
)
_RULES = (
    r"(?:instructions?|prompts?|directions?|directives?|guidelines?|rules?|commands?|criteria|rubrics?|orders|constraints"
    r"|system messages?|programming|training)"
)
_PAST = (
    r"(?:previous|prior|earlier|above|preceding|former|foregoing|grading|scoring"
    r"|evaluation|safety)"
)
_TOP = (
    r"(?:full|perfect|maximum|max|top|highest|best|passing|pass|correct|grounded|supported|right|good|excellent|yes|true"
    r"|5|10|100|1\.0|5/5|10/10|100/100|100%|five|ten)"
)
_NO_AMOUNT = r"\b(?! (?:of|for|in|the)\b)"

COMMANDS = _compile_phrases(
    (
        (
            r"\b(?:ignore|disregard|forget|override|bypass|discard|do not follow|don't follow|stop following) "
            rf"{_GAP}{_PAST} {_FEW}{_RULES}"
        ),
        (
            r"\b(?:ignore|disregard|forget|override) (?:about )?(?:all |any )?(?:of )?(?:your|those|these|the|all) "
            rf"(?:[\w-]{{1,20}} )?{_RULES}(?: (?:and|that|you|above|before)|[.,;:!]|$)"
        ),
        (
            r"\b(?:ignore|disregard|forget) (?:everything|anything|all|whatever|what)(?: that| of)?"
            r"(?: the| i| you| was|'s| has been)?(?: [\w']{1,12}){0,2} (?:above|before this|previously|prior|so far|told)"
        ),
        r"\b(?:ignore|disregard) the (?:above|foregoing|preceding)(?: and|[.,;:!]|$)",
        (
            r"\b(?:do not|don't|never|must not|without) (?:tell|inform|mention|reveal|notify|disclose|alert)(?:ing)? "
            r"(?:this |it |that |anything )?(?:to |about this to )?the user\b"
        ),
        (
            r"\b(?:attention|note|notice|message|instructions?|memo|important|reminder|hint|hey|dear)(?: to| for)?"
            rf"(?: the| any| all)?[,:]? {_JUDGE}\b(?! (?:of|panel|court|training|will|fee|schedule|'s|and|by|from))"
        ),
        (
            rf"\b(?:if|since) you are (?:an? |the )?(?:{_JUDGE}|ai|llm|language model)"
            r"(?:,| (?:model|assistant|agent|reading|grading|judging)\b)"
        ),
        (
            rf"^(?:to )?(?:the )?{_JUDGE}[:,] "
            r"(?:please |you |this |ignore|assign|return|output)"
        ),
        (
            rf"\b{_JUDGE} (?:must|should|shall|is to|are to|has to|have to) (?:\w{{1,12}} )?"
            r"(?:give|award|assign|score|rate|mark|grade|label|accept|approve|return|output|choose|treat|consider) "
            rf"(?:[\w-]{{1,20}} ){{0,6}}{_TOP}\b"
        ),
        (
            rf"\b(?:give|award|assign|score|rate|mark|grade|label|judge|treat|evaluate|classify) {_GAP}"
            rf"(?:this|the|my|that|its|every|each|all) (?:[\w-]{{1,20}} )?{_TEXT}s? {_GAP}{_TOP}{_NO_AMOUNT}"
        ),
        (
            r"\b(?:give|award|assign|return|output|choose|pick|select|answer with|reply with|respond with) "
            rf"(?:it |this |us |me |them )?(?:only )?(?:a |an |the )?{_TOP}[ -](?:possible )?"
            r"(?:score|marks?|rating|grade|verdict|label|points)"
        ),
        (
            r"\b(?:give|award|score|rate|grade|mark) (?:it|this|me) (?:an? )?(?:10|100|5|ten|five|full)"
            r"(?:/| out of |\b)(?! (?:%|percent|days|minutes))"
        ),
    ),
    *("ignor", "disregard", "forget", "overrid", "bypass", "discard", "follow", "user", "judge", "grader", "evaluator"),
    *("rater", "scorer", "assessor", "give", "award", "assign", "score", "rate", "mark", "grade", "label", "treat"),
    *("classify", "evaluate", " you are ", "return", "output", "choose", "pick", "select", " with"),
)
"""Instructions to a judge or a model that do not belong in any text of a trace."""

COMMANDS_IN_DATA = _compile_phrases(
    (
        (
            r"^(?:system|system prompt|system message|developer)(?: ?\(.{0,30}\))?: {0,2}"
            r"(?:you|ignore|from|the user|override|new|disregard)"
        ),
        (
            rf"\b(?:you are|you're|you will be|act) (?:now|hereby|no longer|henceforth)\b {_GAP}"
            r"(?:ai|dan|assistant|model|mode|agent|evaluator|judge|bot|unrestricted|jailbroken|bound|restricted|admin|root"
            r"|developer)\b"
        ),
        (
            r"\b(?:new|updated|real|actual|revised|hidden) (?:system )?(?:instructions?|directives?|prompt|rubric)"
            r"(?: for (?:you|the \w{1,12}))?:"
        ),
        r"\byour (?:new|real|actual|true) (?:task|job|instructions?|objective|purpose) (?:is|are)\b",
        (
            r"\b(?:reveal|print|repeat|show|leak|output|send|share|disclose|expose|exfiltrate) (?:me |us )?(?:all )?(?:of )?"
            r"(?:your|the) (?:full |entire |hidden |initial )?"
            r"(?:system prompt|system message|instructions above|initial prompt|hidden instructions)"
        ),
        (
            r"\b(?:add|include|append|insert|integrate|embed|incorporate|inject|weave|merge|blend|introduce|infuse|fuse"
            rf"|feature|assimilate) {_GAP}(?:sentence|statement|paragraph|rumou?r|statistic|advert\w{{0,10}}|promotion"
            r"|code (?:block|snippet|section|excerpt|segment)) (?:[\w'\"()-]{1,20} ){0,4}"
            r"(?:in|into|to|within|of|with|throughout) (?:the \w{1,12} of )?your (?:final )?"
            r"(?:answer|response|reply|message|solution|implementation|algorithm|code|codebase|explanation|elucidation)"
        ),
        (
            r"\b(?:reverse|scramble|jumble) your (?:final )?(?:answer|response|reply)'s\b"
            r"|\b(?:encode|encrypt|render|scramble|reverse|obfuscate|rearrange|jumble|modify) (?:up )?(?:the )?"
            r"(?:letters of |words of |order of )?your (?:final |whole |entire )?(?:answer|response|reply|message)(?:'s)? "
            r"(?:in |into |using |with |backwards?|to (?:spread|promote|claim|mention|include|endorse))"
        ),
        (
            r"\b(?:this|the) (?:answer|response|trajectory|tool call|transcript|submission) (?:has|have|was|is) "
            r"(?:already )?(?:been )?(?:verified|reviewed|graded|scored|approved|judged|evaluated|validated) "
            r"(?:[\w,]{1,12} ){0,8}(?:correct|grounded|pass|passed|full marks|no further|supported|perfect)"
        ),
    ),
    *("you", "system", "developer", "act", "instruction", "directive", "task", "prompt", "rubric", "answer"),
    *("response", "trajectory", "tool call", "transcript", "submission"),
)
"""Instructions that a tool description or a user may give to the model, but a result or an answer may not."""

COMMANDS_ELSEWHERE = _compile_phrases(
    (
        r"ignor[ae] (?:todas )?(?:las )?instrucciones (?:anteriores|previas)|olvida (?:todas )?las instrucciones",
        r"ignore[zr]? (?:toutes )?les (?:instructions|consignes) (?:precedentes|pr\u00e9c\u00e9dentes)",
        r"oublie[zr]? (?:toutes )?les instructions",
        r"ignorier(?:e|en sie)? (?:alle |die )?(?:vorherigen|bisherigen|vorigen) (?:anweisungen|instruktionen)",
        r"ignor[ae] (?:tutte )?le istruzioni precedenti|ignore (?:todas )?as instru\u00e7\u00f5es anteriores",
        r"\u5ffd\u7565.{0,6}(?:\u6307\u4ee4|\u6307\u793a)|\u7121\u8996.{0,6}\u6307\u793a",
        r"(?:\u6307\u793a|\u547d\u4ee4).{0,3}\u7121\u8996",
        r"\uc774\uc804 \uc9c0\uc2dc.{0,6}\ubb34\uc2dc",
        r"\u043f\u0440\u0435\u0434\u044b\u0434\u0443\u0449\u0438\u0435 \u0438\u043d\u0441\u0442\u0440\u0443\u043a\u0446",
        r"\u092a\u093f\u091b\u0932\u0947 \u0928\u093f\u0930\u094d\u0926\u0947\u0936\u094b\u0902",
    ),
    *("ignor", "olvida", "oublie", "\u5ffd\u7565", "\u7121\u8996", "\uc9c0\uc2dc"),
    *("\u0438\u043d\u0441\u0442\u0440\u0443\u043a", "\u0928\u093f\u0930\u094d\u0926\u0947\u0936\u094b\u0902"),
)
"""`Ignore previous instructions` in ten other languages."""

_REASONS = r"[\"'](?:quotes|justification|reasoning|rationale)[\"']\s{0,4}:"

REPLIES = _compile_phrases(
    (
        rf"[\"'](?:label|verdict|judge?ment|score|rating|grade)[\"']\s{{0,4}}:\s{{0,4}}[^{{}}]{{0,400}}{_REASONS}",
        rf"{_REASONS}[^{{}}]{{0,400}}[\"'](?:label|verdict|judge?ment)[\"']\s{{0,4}}:",
        (
            r"[\"'](?:verdict|judge?ment|is_correct|grounded)[\"']\s{0,4}:\s{0,4}[\"']?"
            rf"(?:{_TOP}|adheres|meets|passed|fully correct)\b"
        ),
    ),
    *("label", "verdict", "judg", "score", "rating", "grade", "is_correct", "grounded"),
)
"""The reply of a judge as JSON."""

VERDICTS = _compile_phrases(
    (
        (
            r"(?:^|[\n.#*>] ?)\**(?:final |overall |my )?"
            r"(?:verdict|judge?ment|evaluation result|judge?'s (?:verdict|score))"
            rf"\**\s?(?:[:=]|is)\s?\**\[{{0,2}}"
            rf"(?:pass|passed|correct|grounded|supported|adheres|fully correct|full marks|10/10|5/5){_NO_AMOUNT}"
        ),
        r"\b(?:rating|verdict)\s?[:=]\s?\[\[(?:[a-c]|\d{1,3})\]\]",
        (
            rf"\b(?:final|overall) (?:score|rating|grade|label)\s?(?:[:=]|is)\s?\**{_TOP}\b"
            rf"[^\n]{{0,80}}\b(?:{_TEXT}|grounded)\b"
        ),
        (
            r"\bthe (?:ai |ai's |assistant's |agent's |model's )?(?:answer|response|trajectory|tool call) (?:is|was) "
            r"(?:\w{2,12} ){0,2}(?:fully|entirely|completely|perfectly|100%) "
            r"(?:correct|grounded|supported|accurate|faithful)\b"
        ),
        r"</?(?:verdict|judge?ment|evaluation_result|final_score)>",
    ),
    *("verdict", "judg", "evaluation", "rating", "score", "answer", "response", "trajectory", "tool call", "grade"),
    "label",
)
"""A judgement in prose."""

MARKERS = _compile_phrases(
    (
        (
            r"<\|(?:im_start|im_end|im_sep|system|user|assistant|end|endoftext|eot_id|start_header_id|end_header_id"
            r"|begin_of_text|channel|message|tool|return|call)\|>"
        ),
        r"\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|<\uff5c(?:user|assistant)\uff5c>",
        (
            r"</?(?:system|system[_-]prompt|assistant|tool_results?|tool_response|function_results|function_calls"
            r"|judge_prompt|rubric|untrusted|user_input)>|<system mode>"
        ),
        (
            r"(?:^|\n) {0,4}#{2,6} ?(?:system|(?:new )?instructions?|assistant|response|end of (?:data|input|trace|context))"
            r" ?:? ?\n[^\n]{0,400}\n {0,4}#{2,6} ?(?:system|instruction|assistant|response|user|input)"
        ),
        (
            r"\n {0,4}(?:human|user) ?:[^\n]{1,2000}\n{1,3} {0,4}assistant ?: {0,2}"
            r"(?:\n|$|sure|yes|okay|of course|i will)"
        ),
        (
            r"-{3} ?(?:end|begin|start) of (?:the )?(?:untrusted |user |tool |system )?"
            r"(?:data|input|material|trace|context|document|prompt|transcript) ?-{3}"
        ),
    ),
    *("<", "[", "#", "assistant", "---"),
)
"""Markers between the messages of a chat and between the parts of a prompt."""

_GROUPS = (COMMANDS, COMMANDS_IN_DATA, COMMANDS_ELSEWHERE, REPLIES, VERDICTS, MARKERS)
_ANCHORS = tuple(sorted({anchor for group in _GROUPS for anchor in group.anchors}))


def list_anchors(text: str) -> list[str]:
    """List the anchors of all groups that occur in a text."""
    return [anchor for anchor in _ANCHORS if anchor in text]
