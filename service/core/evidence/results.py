"""Claims on how a contest went: `2 goals in the first period`, `led 2-1 at half-time`, `A beat B 3-1`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from service.core.evidence.claims import NEGATED, Claim, is_open
from service.core.evidence.contests import SCORES, Contest, Mention, Pair, Score
from service.core.evidence.facts import Fact
from service.core.evidence.ledger import Ledger
from service.core.evidence.quantities import Quantity
from service.core.evidence.verdicts import Found, Heard
from service.core.evidence.words import abbreviates, listed, stem, tokens
from service.core.values import shown

_ORDINALS = {"first": 1, "1st": 1, "opening": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_ORDINAL = "|".join(_ORDINALS)
_NOUN = "periods?|quarters?|half|halves|innings?|sets?|frames?|stanzas?"
_PART = re.compile(rf"\b(?P<nth>{_ORDINAL})\b(?:[ -](?P<noun>{_NOUN})\b)?", re.IGNORECASE)
_HALF = re.compile(r"\bhalf[ -]?time\b|\b(?:first|1st|opening) half\b|\bthe (?:break|interval)\b", re.IGNORECASE)
_BESIDE = re.compile(
    r"\s(?:(?:more|unanswered|straight|additional|further)\s)?(?:(?P<what>goals?|points?|runs?)\s)?"
    rf"(?:in|during)\s(?:the\s|its\s|their\s)?(?P<nth>{_ORDINAL})\b(?:[ -](?P<noun>[a-z]+)\b)?(?P<rest>[^.;]{{0,24}})",
    re.IGNORECASE,
)
_HEAD = re.compile(
    rf"\W*(?:(?:and|then|but|finally|while)\b,?\s)?(?:(?:in|during)\s)?the\s(?P<nth>{_ORDINAL})[ -](?P<noun>{_NOUN})\b",
    re.IGNORECASE,
)
_MORE_PARTS = re.compile(rf"\s*(?:,\s*|,?\s*(?:and|or|to|through)\s+)(?:the\s)?(?:{_ORDINAL}|overtime)\b", re.IGNORECASE)
_SAID = re.compile(r"\b(?:goals?|points?|runs?|scor\w+|net(?:ted)?|tall(?:y|ied)|add(?:ed|ing))\b", re.IGNORECASE)
_SPREAD = listed(
    "total both each combined apiece margin deficit than least per every average respectively either all neither together "
    "teams sides held holding limited limiting restricted allowed allowing conceded conceding respective cushion gap "
    "difference lead leads leading bringing up made no last"
)
"""Words that make of a number something else than what one side scored in a part."""
_AGAINST = re.compile(r"\b(?:against|over|to|than|from|by|with|beating|defeating|facing|for|of|on|past|hosting|hosted|and)\s(?:the\s)?$")


def check_part(claim: Claim, ledger: Ledger, heard: Heard) -> Found | None:
    """The verdict on `A scored 2 goals in the first period`; None where a claim is none of these."""
    number = claim.quantity.number
    if claim.quantity.kind != "number" or claim.composite or not claim.plain or not _PART.search(claim.sentence):
        return None
    contest = ledger.contest()
    part = _part_of(claim, contest) if contest is not None else None
    if contest is None or part is None or heard.has(claim.quantity):
        return None
    at = claim.quantity.start - claim.sentence_start
    if (_SPREAD | NEGATED) & set(tokens(_clause(claim.sentence, at))):
        return None
    side = _subject(contest, claim.sentence[:at])
    if side is None:
        held = {*part.pair, sum(part.pair)}
        return None if number in held else _against(claim.quantity.text, part, 0)
    if part.pair[side] == number:
        return Found("supported", part.facts[side].pointer, "same")
    return _against(claim.quantity.text, part, side)


def _part_of(claim: Claim, contest: Contest) -> Score | None:
    """The part that stands right after a number, or at the head of its sentence."""
    at, end = claim.quantity.start - claim.sentence_start, claim.quantity.end - claim.sentence_start
    beside = _BESIDE.match(claim.sentence, end)
    if beside is not None:
        noun = beside["noun"] or ""
        rest = f" {noun}{beside['rest']}" if noun in ("and", "or", "to") else beside["rest"]
        if _MORE_PARTS.match(rest) or not (beside["what"] or _SAID.search(claim.sentence[:at])):
            return None
        elided = not noun or noun in ("and", "while", "but", "with", "to")
        return _numbered(contest, beside["nth"], "" if elided else noun)
    head, parts = _HEAD.match(claim.sentence), _PART.findall(claim.sentence)
    if head is None or head.end() > at or len(parts) != 1 or _MORE_PARTS.match(claim.sentence, head.end()):
        return None
    said = claim.right[:1] and claim.right[0] in SCORES
    return _numbered(contest, head["nth"], head["noun"]) if said else None


def _numbered(contest: Contest, nth: str, noun: str) -> Score | None:
    same = not noun or abbreviates(contest.part_name, stem(noun.lower()))
    return contest.parts.get(_ORDINALS[nth.lower()]) if contest.parts and same else None


def _clause(sentence: str, at: int) -> str:
    start = max(sentence.rfind(mark, 0, at) for mark in (",", ";", ":", " while ", " but "))
    ends = [end for mark in (",", ";", " while ", " but ") if (end := sentence.find(mark, at)) >= 0]
    return sentence[start + 1 : min(ends, default=len(sentence))]


def _subject(contest: Contest, before: str) -> int | None:
    """The side that is named last, other than as an object: `against B`."""
    found = [m for m in contest.mentions(before) if not _AGAINST.search(before, max(0, m.start - 20), m.start)]
    return found[-1].side if found else None


def _against(said: str, score: Score, side: int, code: str = "wrong_score") -> Found:
    fact = score.facts[side]
    note = f"the text says {said}, {'.'.join(fact.path)} is {shown(fact.value)}"
    return Found("contradicted", fact.pointer, None, code, note)


_PAIR = re.compile(
    r"(?<![\w.\u2013-])(?<!\(\s)(?<!\()(\d{1,3})\s?[-\u2013]\s?(\d{1,3})(?![\w\u2013-]|\.\d|\s?(?:FG|FT|3Pt|record|on\b|from\b|run\b))"
)
_SCORE = re.compile(
    r"\b(?:scor\w+|outscor\w+|won|win|wins|winning|victor\w+|beat\w*|defeat\w*|lead|leads|leading|led|ahead|ti?ed|tie|ty?ing|draw|"
    r"drew|level\w*|equali[sz]\w+|lost|loss|los\w+|fell|edg\w+|final|triumph\w*|result\w*|end\w*|finish\w*|advantage|margin)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(r"\b(?:end|ended|ending|ends|finish\w*|conclud\w+|after)\b", re.IGNORECASE)
_FINAL = re.compile(
    r"\b(?:final|won|wins?|winning|victor\w+|beat\w*|defeat\w*|edg(?:ed|ing)|triumph\w*|fulltime|full[ -]time|(?:game|match) end\w*)\b",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"\b(?:penalt\w+|shoot-?outs?|aggregate|series|record\w*|streak|previous\w*|last (?:\w+ )?(?:game|match|week|season|night|time|meeting)|"
    r"yesterday|next|head-to-head|first two|two periods|power[ -]plays?|shots?|season's|would|run|each|meeting)\b",
    re.IGNORECASE,
)
"""Words of other games, and of other things that are told in pairs of numbers."""
_VERSUS = re.compile(
    r"\b(?:over|against|beat|beating|beats|defeat(?:s|ed|ing)?|versus|vs\.?|edged|hosted|hosting)\s(?:the\s)?(?:host\s|visiting\s)?(?=[A-Z])"
)
_WON = re.compile(
    r"\b(?:won|wins|defeat(?:ed|s)|beat|beats|edged|triumphed|prevailed|(?:emerg|finish)(?:ed|es|ing) (?:as )?(?:victorious|victors|(?:the )?winners?)"
    r"|c[ao]m(?:e|es|ing) out on top|(?:secur|claim|earn)(?:ed|es|ing) (?:a|the|their|its)(?: [a-z]+| \d+-\d+){0,3} (?:win|victory))\b"
    rf"(?!\s(?:the|a|both|all)\s(?:{_ORDINAL}|opening|toss|face|next|last|battle|rebound|season|series|championship|title|period|draw))",
    re.IGNORECASE,
)
_FAVOR = re.compile(r"\b(?:in favou?r of|(?:win|victory) for)\s(?:the\s)?$", re.IGNORECASE)
_SENTENCES = re.compile(r"(?:[^.!?;\n]|[.!?](?!\s|$))+[.!?;]?")
_GAP = re.compile(r"(?:'s)?(?:\s(?!and\b|or\b|who\b|that\b|to\b|not\b|never\b|nearly\b|almost\b|could\b|would\b)[a-z-]+){0,4}\s")


def results_of(text: str, ledger: Ledger, heard: Heard) -> Iterator[tuple[Quantity, Found]]:
    """The results that a text states, as places in it with their verdicts: who won, and scores such as `3-1`."""
    if not (_PAIR.search(text) or _WON.search(text)):
        return
    contest = ledger.contest()
    if contest is None:
        return
    for match in _SENTENCES.finditer(text):
        sentence = match.group()
        if not is_open(sentence) and "?" not in sentence[-2:] and not _is_of_others(contest, sentence):
            for start, end, found in _in_sentence(contest, sentence):
                said = sentence[start:end]
                if not heard.words(said):
                    at = match.start() + start
                    yield Quantity("name", said, "", at, at + len(said), said), found


def _is_of_others(contest: Contest, sentence: str) -> bool:
    """Whether a sentence tells of a game with somebody else."""
    named = {mention.start for mention in contest.mentions(sentence)}
    return any(match.end() not in named for match in _VERSUS.finditer(sentence))


def _in_sentence(contest: Contest, sentence: str) -> Iterator[tuple[int, int, Found]]:
    won = list(_winners(contest, sentence))
    yield from won
    if any(found.verdict == "contradicted" for _, _, found in won):
        return
    end = 0
    for match in _PAIR.finditer(sentence):
        around = sentence[end : match.start()], re.split(r"[,;]|\d", sentence[match.end() : match.end() + 60])[0]
        end = match.end()
        found = _score(contest, match, around)
        if found is not None:
            yield match.start(), match.end(), found


def _winners(contest: Contest, sentence: str) -> Iterator[tuple[int, int, Found]]:
    if contest.winner is None or _OTHER.search(sentence) or NEGATED & set(tokens(sentence)):
        return
    mentions = list(contest.mentions(sentence))
    for match in _WON.finditer(sentence):
        before = [m for m in mentions if m.end <= match.start()]
        if before and _GAP.fullmatch(sentence, before[-1].end, match.start()) and not _is_object(sentence, before[-1]):
            yield before[-1].start, match.end(), _winner(contest, before[-1].side, sentence[before[-1].start : match.end()])
    for mention in mentions:
        favor = _FAVOR.search(sentence, max(0, mention.start - 20), mention.start)
        if favor is not None and _FINAL.search(sentence[: favor.start() + 8]) and not _PART.search(sentence[: favor.start()]):
            yield favor.start(), mention.end, _winner(contest, mention.side, sentence[favor.start() : mention.end])


def _is_object(sentence: str, mention: Mention) -> bool:
    return _AGAINST.search(sentence, max(0, mention.start - 20), mention.start) is not None


def _winner(contest: Contest, side: int, said: str) -> Found:
    score = next(score for score in contest.wholes if score.pair[0] != score.pair[1])
    if side == contest.winner:
        return Found("supported", score.facts[side].pointer, "comparison")
    return _against(said, score, side, "wrong_winner")


def _score(contest: Contest, match: re.Match[str], around: tuple[str, str]) -> Found | None:
    """The verdict on a pair, in whichever order; None where it is no score, or one that may have been on the way."""
    before, after = around
    near = f"{before[-120:]} # {after}"
    if not _SCORE.search(near) or _OTHER.search(near):
        return None
    said = int(match[1]), int(match[2])
    stated = _stated(contest, before, after)
    if stated is None:
        return None
    held, low, high = stated
    for score, pair in held:
        if said in (pair, pair[::-1]):
            return Found("supported", score.facts[0].pointer, "same")
    if any(_lies(low, pair, high) for pair in (said, said[::-1])):
        return None
    return _against(match.group(), held[0][0], 0)


def _lies(low: Pair, pair: Pair, high: Pair) -> bool:
    return low[0] <= pair[0] <= high[0] and low[1] <= pair[1] <= high[1]


def _stated(contest: Contest, before: str, after: str) -> tuple[list[tuple[Score, Pair]], Pair, Pair] | None:
    """The scores that may be meant, and the bounds of those on the way; None where it is open which are."""
    wholes = [(score, score.pair) for score in contest.wholes]
    if contest.parts:
        wholes.append((contest.parts[1], contest.running(len(contest.parts))))
    number = _part_near(contest, before, after)
    near = f"{before} # {after}"
    if number:
        if number not in contest.parts:
            return None
        part, last = contest.parts[number], number == len(contest.parts)
        held = [(part, part.pair), (part, contest.running(number))]
        held += wholes if last or _FINAL.search(near) else []
        if _ENDED.search(near):
            return held, (1, 1), (0, 0)
        return held, contest.running(number - 1), contest.running(number)
    if _HALF.search(near):
        halves = [(score, score.pair) for score in contest.scores if "half" in score.part]
        return (halves, (1, 1), (0, 0)) if halves and not _FINAL.search(near) else None
    if not wholes or _PART.search(near):
        return None
    if _FINAL.search(near):
        return wholes, (1, 1), (0, 0)
    high = max(pair[0] for _, pair in wholes), max(pair[1] for _, pair in wholes)
    return wholes, (0, 0), high


def _part_near(contest: Contest, before: str, after: str) -> int:
    """The number of the part that is named last before a score, or right after it; 0 where none is."""
    found = [m for m in _PART.finditer(f"{after} # {before}") if m["noun"]] if contest.parts else []
    if not found or not abbreviates(contest.part_name, stem(found[-1]["noun"].lower())):
        return 0
    return _ORDINALS[found[-1]["nth"].lower()]
