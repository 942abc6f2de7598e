"""Find what a text says that the assistant itself has done, and bind it to the tools on offer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from service.core.grounding.action_words import TOLD, list_actions, list_verb_objects, only_reads
from service.core.grounding.reading.languages import guess_language
from service.core.trace import Step, ToolDef

MAX_STATEMENTS = 100
State = Literal["done", "failed", "pending", "never_called"]


class OwnAction(NamedTuple):
    """A statement of a thing done: its words, from character `start` up to `end`, within the sentence from `first` up to `last`.

    `own`: in the first person. `actions` are what its verb may mean; `tools` those on offer that can do one of them, and `steps`
    the calls of those so far. `named` says that the sentence names the object of one of the tools.
    """

    text: str
    start: int
    end: int
    first: int
    last: int
    own: bool
    actions: frozenset[str]
    tools: tuple[str, ...]
    steps: tuple[Step, ...]
    state: State
    named: bool


_ADVERBS = r"(?:(?:now|just|also|already|successfully|gone[ ]ahead[ ]and|went[ ]ahead[ ]and|so|since)[ ]){0,2}"
_PRONOUNS = (
    r"(?:(?:le|te|lo|la|les|los|las|se|os|me|vous|vous[ ]l['\u2019]|l['\u2019]|lui|leur|t['\u2019]|y|en|ya|bien|aussi|donc)[ ]?)"
    r"{0,3}"
)
_FORMS = {
    "en": (
        rf"\b(?:I|we)(?:[ ]have|['\u2019]ve)?[ ]{_ADVERBS}(?P<verb>{{V}})\b",
        (
            r"\b(?:(?:has|have|['\u2019]s)[ ](?:now[ ]|just[ ]|already[ ]|also[ ])?been|(?:is|are)(?:[ ]now|[ ]all)?)[ ]"
            rf"{_ADVERBS}(?P<verb>{{V}})\b|(?:^|[.!\n:][ ]*|[ ]\d[.)][ ])(?P<verb2>{{V}})\b"
        ),
    ),
    "de": (
        (
            r"\b(?:ich|wir)[ ](?:habe|haben|hab)\b[^.!?\n;:]{0,120}?[ ](?P<verb>{V})\b"
            r"|\b(?:habe|haben|hab)[ ](?:ich|wir)\b[^.!?\n;:]{0,120}?[ ](?P<verb2>{V})\b"
        ),
        r"\b(?:wurde|wurden|ist|sind)\b[^.!?\n;:]{0,100}?[ ](?P<verb>{V})\b",
    ),
    "es": (
        rf"(?<!\w)(?:ya[ ])?{_PRONOUNS}(?:he|hemos)[ ](?P<verb>{{V}})\b",
        (
            r"\b(?:ha|han)[ ]sido[ ](?P<verb>{V})s?\b|\bse[ ](?:ha|han)[ ](?P<verb2>{V})s?\b"
            r"|\b(?:está|están|queda|quedan|quedó)[ ](?P<verb3>{V})s?\b"
        ),
    ),
    "fr": (
        rf"\b(?:j['\u2019]ai|je[ ]{_PRONOUNS}ai|nous[ ]avons)[ ](?:bien[ ]|déjà[ ]|aussi[ ])?(?P<verb>{{V}})e?s?\b",
        (
            r"\b(?:a|ont)[ ](?:bien[ ]|déjà[ ])?été[ ](?:bien[ ])?(?P<verb>{V})e?s?\b"
            r"|\b(?:est|sont)[ ](?:bien[ ]|maintenant[ ]|désormais[ ])?(?P<verb2>{V})e?s?\b"
        ),
    ),
}
"""By language: how one tells of one's own deed, and how one tells of it without saying who did it."""

_SUBJECT = re.compile(r"\b(?:I|we)(?:['\u2019]ve|[ ]have)?[ ](?P<rest>[^.!?;\n]{1,200})")
_PERFECT = re.compile(r"(?:has|have|['\u2019]s|wurden?|han?|ont|a)\b", re.IGNORECASE)
"""What opens a statement of a thing done that is no description of how things are (`the card is turned over`)."""
_SAME_FORMS = frozenset({"set", "put"})
"""Verbs whose participle is their imperative too."""
_PASSIVE = re.compile(r"\b(?:was|were|is|are|been|be|being|which|that|who)\b")
_NO_STATEMENT = {
    "en": "if once when whenever until before unless had should would will could can may might not never no none nothing neither "
    "whether cannot without failed tried unable to shall let want wants asked yet previously earlier ago",
    "de": "hätte wenn falls sobald bis bevor sollte würde werde wird könnte kann nicht nie kein keine keinen nichts ob "
    "ohne noch soll sollen möchten",
    "es": "hubiera si cuando hasta antes debería podría puede puedo no nunca ningún ninguna nada sin aún todavía quiere",
    "fr": "aurais si quand lorsque jusqu avant devrait pourrait peut peux pas ne n jamais aucun aucune rien sans encore voulez",
}
_DISCLAIMERS = {language: frozenset(words.split()) for language, words in _NO_STATEMENT.items()}
_WORD = re.compile(r"[^\W_]+(?:['\u2019]t\b)?")
_SENTENCE_END = re.compile(r"[!?\n]|\.(?=\s|$)|:\s*\n")
_QUOTES = re.compile(r"[\"“”«»„‟]")

_ADMITS = re.compile(
    r"\b(?:fail\w*|error\w*|unable|cannot|can only|unsuccessful\w*|went wrong|ran into|declined|rejected|refused|denied|timed out"
    r"|sorry|unfortunately|problem|issue|not|never|no|none|nobody|nothing|\w+n['\u2019]t|offline|unavailable|tried|attempt\w*"
    r"|leider|fehlgeschlagen|nicht|kein\w*|fehler|abgelehnt|gescheitert|lo siento|lamentablemente|falló|rechazad\w+|tampoco|sin"
    r"|désolé\w*|malheureusement|échou\w+|échec|pas|aucun\w*|refusé\w*|impossible)\b",
    re.IGNORECASE,
)
_NO_FAULT = re.compile(r"\b(?:no|without(?: any)?|zero) (?:error|failure|problem|issue)s?\b", re.IGNORECASE)
_COMPLETION = re.compile(
    r"\b(?:done|complete[ds]?|success\w*|booked|sent|refunded|cancell?ed|updated|created|scheduled|confirmed|processed"
    r"|erledigt|listo|hecho|c['\u2019]est fait)\b",
    re.IGNORECASE,
)


def admits_failure(text: str) -> bool:
    """Whether a text says, or seems to say, that something failed: its words of failure, and any that deny.

    >>> admits_failure("It could not be sent."), admits_failure("Done, no errors.")
    (True, False)
    """
    return _ADMITS.search(_NO_FAULT.sub("", text)) is not None


def find_completion(text: str) -> re.Match[str] | None:
    """Find where a text says that something is done.

    >>> find_completion("I have sent the mail.").group()
    'sent'
    """
    return _COMPLETION.search(text)


def find_own_actions(text: str, tools: Sequence[ToolDef], steps: Sequence[Step]) -> list[OwnAction]:
    """Return the statements of things done that a tool on offer could have done, in order. `steps`: the calls before the text."""
    if not tools:
        return []
    language = guess_language(text)
    by_action: dict[str, list[str]] = {}
    for tool in tools:
        for action in () if only_reads(tool.name, tool) else list_actions(tool.name):
            by_action.setdefault(action, []).append(tool.name)
    readers = {tool.name for tool in tools if only_reads(tool.name, tool)}
    found: list[OwnAction] = []
    for own, start, end, verb in _iter_statements(text, language) if len(readers) < len(tools) else ():
        actions = TOLD[language].get(verb, frozenset())
        able = tuple(dict.fromkeys([name for action in sorted(actions) for name in by_action.get(action, ())]))
        first, last = _find_sentence(text, start, end)
        general = not own and (not able or verb in _SAME_FORMS) and not _PERFECT.match(text, start)
        if not general and not _is_no_statement(text, first, start, end, last, language):
            calls = tuple(
                [
                    step
                    for step in steps
                    if step.call.name in able
                    or (step.call.name not in readers and list_actions(step.call.name) & actions)
                ]
            )
            words = set(_WORD.findall(text[first:last].lower()))
            named = any(
                list_verb_objects(name) & {word.removesuffix("s") if len(word) > 3 else word for word in words}
                for name in able
            )
            found.append(
                OwnAction(
                    text[start:end], start, end, first, last, own, actions, able, calls, _find_state(calls), named
                )
            )
        if len(found) == MAX_STATEMENTS:
            break
    return found


def _iter_statements(text: str, language: str) -> Iterator[tuple[bool, int, int, str]]:
    found: dict[int, tuple[bool, int, int, str]] = {}
    for own, pattern in zip((True, False), _compile(language), strict=True):
        for match in pattern.finditer(text):
            verb = next(value for name, value in match.groupdict().items() if name.startswith("verb") and value)
            found.setdefault(match.end(), (own, match.start(), match.end(), verb.lower()))
    for subject in _SUBJECT.finditer(text) if language == "en" else ():
        for match in _compile_further(language).finditer(text, *subject.span("rest")):
            if not _PASSIVE.search(text, subject.start(), match.start()):
                found.setdefault(match.end(), (True, match.start("verb"), match.end(), match["verb"].lower()))
    return iter([found[end] for end in sorted(found)])


@lru_cache(maxsize=4)
def _compile(language: str) -> tuple[re.Pattern[str], ...]:
    verbs = "|".join(sorted(TOLD[language], key=len, reverse=True))
    return tuple([re.compile(form.replace("{V}", verbs), re.IGNORECASE) for form in _FORMS[language]])


@lru_cache(maxsize=4)
def _compile_further(language: str) -> re.Pattern[str]:
    verbs = "|".join(sorted(TOLD[language], key=len, reverse=True))
    return re.compile(rf"(?:,[ ]|[ ]and[ ])(?:then[ ]|also[ ]|just[ ])?(?P<verb>{verbs})(?=[ ])", re.IGNORECASE)


def _find_sentence(text: str, start: int, end: int) -> tuple[int, int]:
    first = max([match.end() for match in _SENTENCE_END.finditer(text, max(0, start - 400), start)], default=0)
    after = _SENTENCE_END.search(text, end)
    return first, after.end() if after else len(text)


def _is_no_statement(text: str, first: int, start: int, end: int, last: int, language: str) -> bool:
    """Whether a sentence asks, offers, denies, quotes or makes conditional what its words seem to state."""
    before = re.split(r"[,;:\u2014\u2013]| (?:and|but|und|aber|y|pero|et|mais) ", text[first:start].lower())
    words = set(_WORD.findall(before[-1])) | set(_WORD.findall(text[start:end].lower()))
    opening = set(_WORD.findall(text[first:start].lower())[:1])
    after = set(_WORD.findall(text[end : end + 24].lower())[:2])
    if any(word.endswith(("'t", "\u2019t")) for word in words | opening):
        return True
    if _DISCLAIMERS[language] & (words | opening) or after & {
        "no",
        "none",
        "nothing",
        "by",
        "yet",
        "nichts",
        "nada",
        "rien",
        "von",
        "por",
        "par",
    }:
        return True
    return text[first:last].rstrip().endswith("?") or len(_QUOTES.findall(text[first:start])) % 2 == 1


def _find_state(calls: Sequence[Step]) -> State:
    if not calls:
        return "never_called"
    if all(step.result is not None and step.result.is_error for step in calls):
        return "failed"
    return "done" if any(step.result is not None and not step.result.is_error for step in calls) else "pending"


def has_changed_something(steps: Sequence[Step], tools: Mapping[str, ToolDef]) -> bool:
    """Whether a call that may have changed something did not fail."""
    return any(
        not only_reads(step.call.name, tools.get(step.call.name))
        and not (step.result is not None and step.result.is_error)
        for step in steps
    )
