"""Read a text into clauses, each with its mentions and its subjects, the entities that it is about."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from service.core.evidence.facts.entities import Entity, Group, Holdings, Name, Words
from service.core.evidence.reading.dates import WEEKDAYS, read_relative_date
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.words import split_tokens, split_words, stem_word
from service.core.evidence.sentences.claims import HIGHEST, LOWEST, PRONOUN, split_sentences
from service.core.evidence.sentences.flags import find_flags
from service.core.evidence.sentences.mentions import MAX_SUBJECTS, Clause, ClauseMention, Sight
from service.core.evidence.sentences.tables import find_head, find_heads, stands_over_rule

_ANOTHER = split_words("second third fourth fifth last other others another former latter rest")
_DEFINITE = (" the", "\nthe", "(the")
_PART_OF_NAME: Words = ("part of a name",)
_NEAR_PART = 12
"""Most characters between two parts of the same name."""
_TOKEN = re.compile(r"[^\W_]+")
_JOINT = re.compile(r"[,;:()|](?=\s|\*|$)|[()|]|\s[-\u2013\u2014\u2192]\s|\b(?:and|but|while|whereas|which|who)\b")
_SHORT_DAYS = {name[:3]: name for name in WEEKDAYS}
_DAY = re.compile(
    rf"\b(?:the day (?:after tomorrow|before yesterday)|today|tonight|tomorrow|yesterday|(?:{'|'.join(WEEKDAYS)})(?!s\b)"
    r"|in (?:a|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,3}) (?:day|week)s?"
    r"|(?:a|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,3}) (?:day|week)s? ago"
    r"|(?<=on )(?:mon|tues?|wed|thurs?|thu|fri|sat|sun))\b",
    re.IGNORECASE,
)
_ALL = split_words("all both together altogether each total combined overall every average sum")
_BARE = split_words("and both the flight order either between of in for by with from at to on than")

_COMPARED = split_words("than below above under over behind ahead that like as both")
"""Words of a clause that compares the entity a pronoun stands for with another."""
_STANDS = split_words("is are was were been be being s as status currently now still already with by stands not them")
_ARTICLES = split_words("the a an")
_DETERMINERS = split_words("the a an your its their our my")
_PLACE_PREPOSITIONS = split_words("in on at")
_BEFORE_ONE = split_words("the this that next other which each every any last first but another no")
_ROLE_PATTERNS = {
    "from": (re.compile(r"\b(?:from|out of)\s+$", re.IGNORECASE), re.compile(r"\s*(?:\u2192|->|to\b)")),
    "to": (re.compile(r"(?:\u2192|->|\b(?:to|into|towards))\s*$", re.IGNORECASE), re.compile(r"(?!)")),
}
"""Patterns for the words before and after a name that show its role."""


class ClauseReader:
    """Reads texts into clauses, resolving names and days against the holdings."""

    def __init__(self, holdings: Holdings, today: date | None) -> None:
        self._holdings = holdings
        self._today = today

    def read(self, text: str, quantities: Sequence[Quantity]) -> list[Clause]:
        """Return the clauses of a text, in order."""
        mentions = self._find_mentions(text, quantities)
        primary = self._find_primary(mentions)
        starts, heads = [mention.start for mention in mentions], find_heads(text)
        found: list[Clause] = []
        focus: tuple[Entity, ...] = ()
        near: set[int] = set()
        last = 0
        for start, end in split_sentences(text):
            if "\n\n" in text[last : start + 1] or text[last:start].count("\n") > 1:
                focus, near = focus if len(near) < 2 else (), set()
            last = end
            inside = mentions[bisect_left(starts, start) : bisect_left(starts, end)]
            if text[start:end].lstrip().startswith("|"):
                inside = [] if stands_over_rule(text, end) else _read_heads(text, inside, heads)
            clauses = [
                self._resolve_subjects(self._read_flags(one), primary) for one in _split(text, start, end, inside)
            ]
            bound = _bind_row(clauses) if clauses and clauses[0].row else self._bind(clauses, focus)
            found += bound
            named = _list_subjects(one for one in bound if one.named)
            strayed = any(_names_other(one, focus) or (_mentions_extreme(one) and not one.named) for one in bound)
            focus = named or (() if strayed else focus)
            near |= {id(entity) for one in bound if one.named for entity in one.subjects}
        return found

    def _find_mentions(self, text: str, quantities: Sequence[Quantity]) -> list[ClauseMention]:
        whole = [ClauseMention(q.start, q.end, q.text) for q in quantities if q.kind in ("date", "money")]
        names = [one for one in self._iter_names(text) if not _overlaps(one, whole)]
        names = sorted([*names, *self._iter_parts(text, sorted([*names, *whole]))])
        days = [one for one in self._iter_days(text) if not _overlaps(one, names)]
        said = [ClauseMention(q.start, q.end, q.text, quantity=q) for q in quantities]
        said = [one for one in said if not _overlaps(one, names) and not _stands_for_thing(one, text)]
        dates = [one for one in said if one.is_day]
        days = [one for one in days if not _overlaps(one, said) and not _stands_beside(one, dates)]
        return sorted([*names, *days, *said])

    def _iter_names(self, text: str) -> Iterator[ClauseMention]:
        heads = self._holdings.heads
        tokens = list(_TOKEN.finditer(text))
        words = [token.group().casefold() for token in tokens]
        at = 0
        while at < len(words):
            match = next((one for one in heads.get(words[at], ()) if tuple(words[at : at + len(one)]) == one), None)
            if match is not None:
                start, end = tokens[at].start(), tokens[at + len(match) - 1].end()
                sure = text[max(0, start - 6) : start].rstrip(" *_\"'\u201c").lower().endswith(_DEFINITE)
                yield ClauseMention(start, end, text[start:end], match, columns=self._list_columns(match), sure=sure)
            at += len(match) if match is not None else 1

    def _iter_parts(self, text: str, known_mentions: Sequence[ClauseMention]) -> Iterator[ClauseMention]:
        """Find parts of names, such as `Brandt` or `the tile cache`. A single lower-case word may be no name at all."""
        pending: list[tuple[re.Match[str], Entity]] = []
        for token in _TOKEN.finditer(text) if self._holdings.telling else ():
            entity = self._holdings.telling.get(stem_word(token.group().casefold()), (None,))[0]
            place = ClauseMention(token.start(), token.end(), token.group())
            if entity is None or _overlaps(place, known_mentions):
                continue
            if pending and (pending[-1][1] is not entity or token.start() - pending[-1][0].end() > _NEAR_PART):
                yield _join_parts(text, pending)
                pending = []
            pending.append((token, entity))
        if pending:
            yield _join_parts(text, pending)

    def _list_columns(self, words: Words) -> frozenset[Words]:
        return frozenset(name.fact.path for name in self._holdings.names[words] if name.fact is not None)

    def _read_flags(self, clause: Clause) -> Clause:
        """Return the clause with its names' roles resolved and with a mention for each flag that it states."""
        mentions = [self._read_role(one, clause) for one in clause.mentions]
        mentions = [
            one
            for one in mentions
            if not one.columns or (one.sure and self._list_named(one)) or self._is_predicate(one, clause)
        ]
        name_words = {word for one in mentions if one.words for word in one.words}
        flags = [one for one in find_flags(clause, self._holdings.flags) if not name_words & {*split_tokens(one.text)}]
        return replace(clause, mentions=tuple(sorted([*mentions, *flags], key=_get_start)))

    def _is_predicate(self, mention: ClauseMention, clause: Clause) -> bool:
        """Whether words that are not a name state something: after a form of `be`, or at the start of a clause."""
        if mention.text != mention.text.lower() or any(c.isdigit() for c in mention.text):
            return True
        if len(mention.words) > 1 and any(name.proper for name in self._holdings.names[mention.words]):
            return True
        at = mention.start - clause.start
        before = split_tokens(clause.text[:at])
        if before[-1:] and before[-1] in _ARTICLES and len(before) > 1:
            return before[-2] in _PLACE_PREPOSITIONS
        return (
            not before
            or before[-1] in _STANDS
            or before[-1] in ("no", "any")
            or (before[0] in _ARTICLES and bool(_STANDS & {*before}))
        )

    def _read_role(self, mention: ClauseMention, clause: Clause) -> ClauseMention:
        """Return the mention with its role, and the fields of that role, if words beside it show one: `from Oslo`."""
        if not mention.words:
            return mention
        before = clause.text[: mention.start - clause.start]
        after = clause.text[mention.end - clause.start :]
        for role, (ahead, behind) in _ROLE_PATTERNS.items():
            if self._holdings.roles[role] and (ahead.search(before) or behind.match(after)):
                return mention._replace(columns=self._holdings.roles[role], part=role)
        return mention

    def _iter_days(self, text: str) -> Iterator[ClauseMention]:
        for match in _DAY.finditer(text):
            said = match.group().lower()
            if said in WEEKDAYS:
                yield ClauseMention(*match.span(), match.group(), weekday=said)
            elif said[:3] in _SHORT_DAYS:
                if match.group()[0].isupper():
                    yield ClauseMention(*match.span(), match.group(), weekday=_SHORT_DAYS[said[:3]])
            elif self._today is not None and (values := read_relative_date(said, self._today)):
                quantity = Quantity("date", values[0], "", *match.span(), match.group(), 0, values[1:])
                yield ClauseMention(*match.span(), match.group(), quantity=quantity)

    def _find_primary(self, mentions: Sequence[ClauseMention]) -> dict[Group, Words]:
        """Return the field that names the entities of each kind in this text: the one by which most of them are named."""
        seen: dict[tuple[Group, Words], set[int]] = {}
        for mention in mentions:
            for entity, column in self._list_named(mention) if mention.entity is None else ():
                seen.setdefault((entity.group, column), set()).add(id(entity))
        best: dict[Group, tuple[float, Words]] = {}
        for (group, column), entities in seen.items():
            weight = len(entities) * (1 if column == ("",) else 1.5)  # names take precedence over days
            weight += self._holdings.is_key(group, column) / 4 - self._holdings.find_place(group, column) / 1000
            if group not in best or weight > best[group][0]:
                best[group] = (weight, column)
        return {group: column for group, (_, column) in best.items()}

    def _list_named(self, mention: ClauseMention) -> list[tuple[Entity, Words]]:
        if mention.entity is not None:
            return [(mention.entity, _PART_OF_NAME)] if mention.sure else []
        if mention.words:
            cased = (
                mention.sure
                or mention.text[:1].isupper()
                or any(c.isdigit() for c in mention.text)
                or len(mention.words) > 1
            )
            named = self._holdings.find_unique(mention.words)
            return [
                (one.entity, one.column)
                for one in named
                if self._is_name(one, mention) and (cased or _is_lower_case(one.fact))
            ]
        return [(entity, ("",)) for entity in self._holdings.find_of_day(mention.quantity, mention.weekday)]

    def _is_name(self, name: Name, mention: ClauseMention) -> bool:
        return name.proper or (mention.sure and self._holdings.is_key(name.entity.group, name.column))

    def _resolve_subjects(self, clause: Clause, primary: dict[Group, Words]) -> Clause:
        found: dict[int, tuple[ClauseMention, Entity]] = {}
        keyed, by = True, set[Words]()
        for mention in clause.mentions:
            for entity, column in self._list_named(mention):
                if column is _PART_OF_NAME or primary.get(entity.group) == column:
                    found[id(entity)] = (mention, entity)
                    keyed = keyed and (column is _PART_OF_NAME or self._holdings.is_key(entity.group, column))
                    by.add(column)
        for mention, entity in self._find_common(clause) if not found else ():
            found[id(entity)] = (mention, entity)
        named = sorted(found.values(), key=lambda one: one[0].start)
        subjects = tuple([entity for _, entity in named][:MAX_SUBJECTS])
        places = frozenset([mention.start for mention, _ in named])
        return replace(
            clause, subjects=subjects, named=places, sight="here" if subjects else "none", keyed=keyed, by=frozenset(by)
        )

    def _find_common(self, clause: Clause) -> Iterator[tuple[ClauseMention, Entity]]:
        """Find the one entity of its kind that holds all the names of a clause, if the clause has several."""
        names = [one for one in clause.mentions if one.words]
        if len({one.words for one in names}) < 2:
            return
        candidates = [{id(n.entity): n.entity for n in self._holdings.names.get(one.words, ())} for one in names]
        common = [
            entity for key, entity in candidates[0].items() if entity.group and all(key in each for each in candidates)
        ]
        by_group = {entity.group: entity for entity in common}
        yield from [(names[-1], entity) for entity in common] if len(by_group) == len(common) else []

    def _bind(self, clauses: Sequence[Clause], focus: tuple[Entity, ...]) -> list[Clause]:
        """Give clauses without a name the subjects of the clause before, or of those around at the start of a sentence."""
        first = next((one.subjects for one in clauses if one.subjects), ())
        bound: list[Clause] = []
        current: tuple[Entity, ...] = ()
        only_names = strayed = False
        pronoun = bool(clauses and focus) and bool(PRONOUN.match(clauses[0].sentence))
        for clause in clauses:
            if clause.subjects and pronoun and not current and _COMPARED & {*clause.words}:
                current = (*focus, *clause.subjects)[:MAX_SUBJECTS]
                bound.append(replace(clause, subjects=current, sight="loose"))
            elif clause.subjects:
                current = (*(current if only_names else ()), *clause.subjects)[:MAX_SUBJECTS]
                bound.append(replace(clause, subjects=current))
                only_names, strayed = not {*clause.words} - _BARE - _list_name_words(clause), False
            elif current:
                other = self._has_own_subject(clause) or self._calls_other(clause, current) or _mentions_extreme(clause)
                strayed = strayed or other or self._is_of_other_thing(clause)
                sight: Sight = "loose" if strayed else "before"
                bound.append(replace(clause, subjects=current, sight=sight, keyed=bound[-1].keyed, by=bound[-1].by))
            elif first and not pronoun:
                bound.append(replace(clause, subjects=(*focus, *first), sight="loose"))
            else:
                strayed = strayed or _mentions_extreme(clause)
                far: Sight = "loose" if strayed else "far"
                bound.append(replace(clause, subjects=focus, sight=far if focus else "none"))
        sentence = {*split_tokens(clauses[0].sentence)} if clauses else set[str]()
        if "respectively" in sentence:
            return _pair_up(bound)
        return [replace(one, sight="loose") if one.subjects and _ALL & {*one.words} else one for one in bound]

    def _is_of_other_thing(self, clause: Clause) -> bool:
        """Whether a number in the clause belongs to something that is no field: `$28.40 for refuelling`."""
        after = [clause.text[one.end - clause.start :] for one in clause.mentions if one.quantity is not None][-1:]
        words = split_tokens(after[0])[:3] if after else []
        noun = [word for word in words[1:] if word not in _DETERMINERS][:1] if words[:1] == ["for"] else []
        known = {stem_word(word) for one in clause.mentions for word in split_tokens(one.text)}
        return bool(noun) and not noun[0].isdigit() and stem_word(noun[0]) not in self._holdings.field_words | known

    def _calls_other(self, clause: Clause, current: Sequence[Entity]) -> bool:
        """Whether a clause contains the name of another entity, in small letters or in part: `glaze $5` of Glaze."""
        names = (name for one in clause.mentions if one.words for name in self._holdings.find_unique(one.words))
        return _names_other(clause, current) or any(name.proper and name.entity not in current for name in names)

    def _has_own_subject(self, clause: Clause) -> bool:
        """Whether a clause begins with a noun that names no field: `the gloves cost $3`."""
        words = clause.words
        noun = words[1:3] if words[:1] and words[0] in _DETERMINERS else []
        known = {stem_word(word) for one in clause.mentions for word in split_tokens(one.text)}
        noun = noun[:1] if noun[:1] and noun[0].endswith("s") else noun
        return bool(noun) and not {stem_word(word) for word in noun} & (self._holdings.field_words | known)


def _get_start(mention: ClauseMention) -> int:
    return mention.start


def _is_lower_case(fact: object) -> bool:
    value = getattr(fact, "value", "")
    return isinstance(value, str) and value.lower() == value


def _stands_for_thing(mention: ClauseMention, text: str) -> bool:
    """Whether `one` is a pronoun, not a number: `the next one`, `all but one`."""
    before = split_tokens(text[max(0, mention.start - 12) : mention.start])[-1:]
    return mention.text.lower() == "one" and bool(_BEFORE_ONE & {*before})


def _overlaps(one: ClauseMention, others: Sequence[ClauseMention]) -> bool:
    at = bisect_left(others, (one.end,))
    return at > 0 and others[at - 1].end > one.start


def _stands_beside(day: ClauseMention, dates: Sequence[ClauseMention]) -> bool:
    """Whether a weekday is part of a date: `Friday, May 3`."""
    near = dates[max(0, bisect_left(dates, (day.start,)) - 1) :][:2]
    return bool(day.weekday) and any(-8 < one.start - day.end < 8 or -8 < day.start - one.end < 8 for one in near)


def _split(text: str, start: int, end: int, mentions: Sequence[ClauseMention]) -> Iterator[Clause]:
    """Split a sentence into clauses, never inside a mention."""
    sentence = text[start:end]
    row = sentence.lstrip().startswith("|")
    at, used = start, 0
    for joint in [*_JOINT.finditer(text, start, end), None]:
        stop = joint.start() if joint else end
        if joint and any(one.start < joint.end() and stop < one.end for one in mentions[used : used + 3]):
            continue
        inside = [one for one in mentions[used:] if one.start < stop]
        used += len(inside)
        if text[at:stop].strip(" .*_"):
            yield Clause(at, stop, text[at:stop], sentence, start, tuple(inside), row=row)
        at = joint.end() if joint else end


def _read_heads(text: str, mentions: Sequence[ClauseMention], heads: Mapping[int, list[str]]) -> list[ClauseMention]:
    """Return the mentions of a table row, each with the words of its column's head."""
    found: list[ClauseMention] = []
    for one in mentions:
        head = find_head(text, text.rfind("\n", 0, one.start) + 1, one.start, heads)
        found.append(one._replace(head=tuple(split_tokens(head))) if head else one)
    return found


def _bind_row(clauses: Sequence[Clause]) -> list[Clause]:
    """Give all cells of a row the subjects that any of them names; a day names one only if the row has no other."""
    days = [one for clause in clauses for one in clause.mentions if one.is_day]
    by_day = any(one.start in clause.named for clause in clauses for one in clause.mentions if one.is_day)
    subjects = _list_subjects(clauses) if not by_day or len(days) == 1 else ()
    return [replace(one, subjects=subjects, sight="here" if subjects else "none") for one in clauses]


def _pair_up(clauses: Sequence[Clause]) -> list[Clause]:
    """Pair values with subjects in order, as in `A and B cost $5 and $7 respectively`."""
    subjects = _list_subjects(one for one in clauses if one.named)
    said = [one for clause in clauses for one in clause.mentions if one.start not in clause.named and one.flag is None]
    kinds = {one.quantity.kind if one.quantity else "text" for one in said}
    if len(said) != len(subjects) or len(kinds) != 1:
        return [replace(one, sight="loose") for one in clauses]
    pairs = dict(zip([one.start for one in said], subjects, strict=True))
    return [
        replace(clause, mentions=(one,), subjects=(pairs[one.start],), sight="before")
        for clause in clauses
        for one in clause.mentions
        if one.start in pairs
    ]


def _names_other(clause: Clause, current: Sequence[Entity]) -> bool:
    """Whether a clause contains part of another entity's name."""
    return any(one.entity is not None and one.entity not in current for one in clause.mentions)


def _mentions_extreme(clause: Clause) -> bool:
    """Whether a clause is about an extreme (`cheapest`) or about some other entity (`the second`), whichever that is."""
    ends = _ANOTHER | HIGHEST | LOWEST
    return any(word in ends or (len(word) > 5 and word.endswith("est")) for word in clause.words)


def _join_parts(text: str, parts: Sequence[tuple[re.Match[str], Entity]]) -> ClauseMention:
    start, end = parts[0][0].start(), parts[-1][0].end()
    cased = any(token.group()[:1].isupper() and not _starts_sentence(text, token.start()) for token, _ in parts)
    return ClauseMention(start, end, text[start:end], entity=parts[0][1], sure=cased or len(parts) > 1)


def _starts_sentence(text: str, at: int) -> bool:
    return not text[:at].strip(" *_-\n") or text[:at].rstrip(' *_"(')[-1:] in ".!?:\n"


def _list_name_words(clause: Clause) -> set[str]:
    return {word for one in clause.mentions if one.start in clause.named for word in split_tokens(one.text)}


def _list_subjects(clauses: Sequence[Clause] | Iterator[Clause]) -> tuple[Entity, ...]:
    found = {id(entity): entity for clause in clauses for entity in clause.subjects}
    return tuple(found.values())[:MAX_SUBJECTS]
