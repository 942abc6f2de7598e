"""Find what a text says that the assistant itself has done, and bind it to the tools on offer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, cast

from service.core.grounding.fields import split_name
from service.core.grounding.reading.languages import DATA, LANGUAGES, Words, guess_language, list_words
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


def _read_verbs() -> tuple[dict[str, dict[str, frozenset[str]]], dict[str, frozenset[str]]]:
    """Read by language the past forms that tell of an action, and all English verbs, each with the actions that it may be."""
    told: dict[str, dict[str, frozenset[str]]] = {language: {} for language in LANGUAGES}
    named: dict[str, frozenset[str]] = {}
    irregular = list_words("verbs", "irregular")
    for line in cast("str", DATA["actions"]).splitlines():
        action, *forms = line.split("|")
        for language, words in zip(LANGUAGES, forms, strict=True):
            for word in words.split():
                found = [told[language]] if language != "en" or word.endswith("ed") or word in irregular else []
                for verbs in [*found, *([named] if language == "en" else [])]:
                    verbs[word] = verbs.get(word, frozenset()) | {action.strip()}
    return told, named


TOLD, _NAMED = _read_verbs()
SELF_MADE = list_words("verbs", "self_made")
"""Actions whose verbs tell as often of a text, a list or a thought: they prove nothing."""
_READING, _SAME_FORMS = list_words("verbs", "reading"), list_words("verbs", "same_forms")
_NO_STATEMENT = {language: list_words("no_statement", language) for language in LANGUAGES}
_NOTHING_DONE = list_words("verbs", "after")
_DENIALS = list_words("denials")

_SUBJECT = re.compile(r"\b(?:I|we)(?:['\u2019]ve|[ ]have)?[ ](?P<rest>[^.!?;\n]{1,200})")
_PERFECT = re.compile(r"(?:has|have|['\u2019]s|wurden?|han?|ont|a)\b", re.IGNORECASE)
"""What opens a statement of a thing done that is no description of how things are (`the card is turned over`)."""
_PASSIVE = re.compile(r"\b(?:was|were|is|are|been|be|being|which|that|who)\b")
_WORD = re.compile(r"[^\W_]+(?:['\u2019]t\b)?")
_SENTENCE_END = re.compile(r"[!?\n]|\.(?=\s|$)|:\s*\n")
_CLAUSE = re.compile(r"[,;:\u2014\u2013]| (?:and|but|und|aber|y|pero|et|mais) ")
_QUOTES = re.compile(r"[\"“”«»„‟]")
_FAILURE, _NO_FAILURE, _COMPLETION = (
    re.compile(rf"\b(?:{cast('str', DATA[name])})\b", re.IGNORECASE) for name in ("failure", "no_failure", "completion")
)


def admits_failure(text: str) -> bool:
    """Whether a text says, or seems to say, that something failed: its words of failure, and any that deny.

    >>> admits_failure("It could not be sent."), admits_failure("Done, no errors.")
    (True, False)
    """
    return _FAILURE.search(_NO_FAILURE.sub("", text)) is not None


def find_completion(text: str) -> re.Match[str] | None:
    """Find where a text says that something is done."""
    return _COMPLETION.search(text)


@lru_cache(maxsize=256)
def list_verb_forms(action: str) -> frozenset[str]:
    """Return every word for an action, in all languages."""
    return frozenset(
        [word for words in (*TOLD.values(), _NAMED) for word, actions in words.items() if action in actions]
    )


@lru_cache(maxsize=4096)
def list_actions(name: str) -> frozenset[str]:
    """Return the actions of a tool, judging by the verbs in its name."""
    return frozenset([action for word in split_name(name) for action in _NAMED.get(word, ())])


def only_reads(name: str, tool: ToolDef | None) -> bool:
    """Whether a tool changes nothing: its `readOnlyHint` decides, or else whether its name begins with a reading verb."""
    hint = tool.annotations.get("readOnlyHint") if tool is not None and tool.annotations else None
    return hint if isinstance(hint, bool) else not _READING.isdisjoint(split_name(name)[:1])


def has_changed_something(steps: Sequence[Step], tools: Mapping[str, ToolDef]) -> bool:
    """Whether a call that may have changed something did not fail."""
    acting = [step for step in steps if not only_reads(step.call.name, tools.get(step.call.name))]
    return any(step.result is None or not step.result.is_error for step in acting)


def find_own_actions(text: str, tools: Sequence[ToolDef], steps: Sequence[Step]) -> list[OwnAction]:
    """Return the statements of things done that a tool on offer could have done, in order. `steps`: the calls before the text."""
    acting = [tool.name for tool in tools if not only_reads(tool.name, tool)]
    readers = {tool.name for tool in tools}.difference(acting)
    language = guess_language(text) if acting else ""
    found: list[OwnAction] = []
    for own, start, end, verb in _iter_statements(text, language) if acting else ():
        actions = TOLD[language].get(verb, frozenset())
        able = [(name, action) for name in acting for action in sorted(list_actions(name) & actions)]
        able = tuple(dict.fromkeys([name for name, _ in sorted(able, key=lambda one: one[1])]))
        first, last = _find_sentence(text, start, end)
        words = frozenset(map(_drop_plural, _WORD.findall(text[first:last].lower())))
        by_words = own and not able
        if by_words:
            able = tuple([name for name in acting if words & set(map(_drop_plural, split_name(name)))])
        general = not own and (not able or verb in _SAME_FORMS) and not _PERFECT.match(text, start)
        if not general and not _is_no_statement(text, first, start, end, last, language):
            calls = [step for step in steps if step.call.name not in readers and list_actions(step.call.name) & actions]
            calls = calls or [step for step in steps if by_words and step.call.name in able]
            named = any(not words.isdisjoint(_list_objects(name)) for name in able)
            failed = [step.result.is_error for step in calls if step.result is not None]
            state: State = "done" if not all(failed) else "failed" if len(failed) == len(calls) else "pending"
            said = text[start:end]
            state = state if calls else "never_called"
            found.append(OwnAction(said, start, end, first, last, own, actions, able, tuple(calls), state, named))
        if len(found) == MAX_STATEMENTS:
            break
    return found


def _list_objects(name: str) -> set[str]:
    """List what a tool acts on, judging by its name: its words without the first verb."""
    words = split_name(name)
    first = next((word for word in words if word in _NAMED), "")
    return {_drop_plural(word) for word in words if word != first}


def _drop_plural(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _iter_statements(text: str, language: str) -> Iterator[tuple[bool, int, int, str]]:
    found: dict[int, tuple[bool, int, int, str]] = {}
    for own, name in ((True, "own"), (False, "other")):
        for match in _compile(cast("Words", DATA[name])[language], language).finditer(text):
            found.setdefault(match.end(), (own, match.start(), match.end(), match[str(match.lastgroup)].lower()))
    for subject in _SUBJECT.finditer(text) if language == "en" else ():
        for match in _compile(cast("str", DATA["further"]), language).finditer(text, *subject.span("rest")):
            if not _PASSIVE.search(text, subject.start(), match.start()):
                found.setdefault(match.end(), (True, match.start("verb"), match.end(), match["verb"].lower()))
    return iter([found[end] for end in sorted(found)])


@lru_cache(maxsize=16)
def _compile(form: str, language: str) -> re.Pattern[str]:
    verbs = "|".join(sorted(TOLD[language], key=len, reverse=True))
    pattern = form.replace("{V}", verbs).replace("{A}", cast("str", DATA["adverbs"]))
    return re.compile(pattern, re.IGNORECASE)


def _find_sentence(text: str, start: int, end: int) -> tuple[int, int]:
    first = max([match.end() for match in _SENTENCE_END.finditer(text, max(0, start - 400), start)], default=0)
    after = _SENTENCE_END.search(text, end)
    return first, after.end() if after else len(text)


def is_denied(text: str, start: int) -> bool:
    """Whether the clause denies what stands in it at character `start`."""
    words = _WORD.findall(_CLAUSE.split(text[_find_sentence(text, start, start)[0] : start].lower())[-1])
    return any(word in _DENIALS or word.endswith(("'t", "\u2019t")) for word in words)


def _is_no_statement(text: str, first: int, start: int, end: int, last: int, language: str) -> bool:
    """Whether a sentence asks, offers, denies, quotes or makes conditional what its words seem to state."""
    before = text[first:start].lower()
    words = {*_WORD.findall(_CLAUSE.split(before)[-1]), *_WORD.findall(text[start:end].lower())}
    words.update(_WORD.findall(before)[:1])
    if any(word.endswith(("'t", "\u2019t")) for word in words) or _NO_STATEMENT[language] & words:
        return True
    if not _NOTHING_DONE.isdisjoint(_WORD.findall(text[end : end + 24].lower())[:2]):
        return True
    return text[first:last].rstrip().endswith("?") or len(_QUOTES.findall(text, 0, start)) % 2 == 1
