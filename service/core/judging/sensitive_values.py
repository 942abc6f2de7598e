"""Find sensitive values in a trace: secrets, identifiers and contacts, by their shape and by the key they are under.

Every pattern matches a run of bounded length without nested repeats, so time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from pydantic import JsonValue

from service.core.trace import Trace

SensitiveKind = Literal["secrets", "identifiers", "contacts"]
Spelling = Literal["loose", "folded", "exact"]
"""How a value may be written elsewhere. loose: with any separators, in either case. folded: in either case. exact: as found."""


class Sensitive(NamedTuple):
    """A sensitive value: its letters and digits in lower case, its text as found, and how else it may be written."""

    core: str
    text: str
    how: Spelling


MAX_RUNS = 16
"""Most runs of letters and digits in one value. A value with more is masked run by run."""
MAX_LENGTH = 128

RUN = re.compile(r"(?<=\\)[bfnrt]|[^\W_]+")
"""A maximal run of letters and digits. In JSON text, `\\n` is a line break and not part of the next run."""
FOLD = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_KEY_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_MEMBER = re.compile(r'"([\w-]{1,40})" ?: ?(?:"([^"\\\n]{1,128})"|(\d{1,30})(?![\d.eE]))')
"""A member of an object in JSON text."""


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET = _split_words(
    "password passwd passphrase passcode secret apikey cvv cvc pin ssn authorization iban credential"
)
_SECRET_KINDS = _split_words("api access private secret client auth bearer refresh session signing encryption")
_CONTACT = _split_words("phone mobile tel telephone fax email mail")
_NOUNS = _split_words(
    "account order invoice tracking confirmation booking reservation ticket card customer user member policy case claim "
    "reference ref transaction shipment passport contract parcel payment flight certificate serial"
)
_ENDS = _split_words("id ids uuid uuids guid identifier number numbers no num code codes ref reference")
_PUBLIC = _split_words(
    "country currency status language error zip postal postcode area airport city state exit response product page "
    "line house room color promo discount model version tool trace"
)
_AMOUNTS = _split_words(
    "amount price total cost fee sum cents balance count quantity qty minutes seconds hours days size limit year usd eur "
    "points score weight distance age value"
)

_IDENTIFIER = re.compile(r"[^\W_][\w.@:+#/-]{2,127}")
_DATE = re.compile(r"(?:19|20)\d\d([-/.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?:\D.*)?", re.DOTALL)
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_PHONE = re.compile(r"(?<![\w+])(?:\+\d[\d ().-]{6,18}\d|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}([.-])\d{3}\1\d{4})(?![\w-])")
_NAMED_IN_PROSE = re.compile(
    r"\b(?:account|order|invoice|tracking|confirmation|booking|reservation|ticket|customer|user|member|policy|case|claim"
    r"|reference|transaction|shipment|passport)(?: (?:number|no\.?|id|code|reference))?(?: is)?:? ?#? ?"
    r"((?=[\w-]{0,40}\d)[A-Z0-9][\w-]{3,40})\b",
    re.IGNORECASE,
)
_KEYS = re.compile(
    r"\b(?:[sprw]k[-_][A-Za-z0-9_-]{16,200}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,200}|github_pat_\w{20,200}"
    r"|glpat-[\w-]{16,100}|xox[abprs]-[A-Za-z0-9-]{10,200}|AIza[\w-]{30,60}|hf_[A-Za-z0-9]{20,100})"
)
_TOKEN = re.compile(r"\beyJ[\w-]{8,4000}\.[\w-]{8,8000}\.[\w-]{8,4000}|\bBearer {1,3}([\w.~+/=-]{8,8000})")
_SAID_SECRET = re.compile(
    r"\b(?:password|passwd|passphrase|passcode|secret|api[ _-]?key|access[ _-]?token)(?: is|:|=| =|\"?:) ?[\"'`]?"
    r"((?=[^\s\"'`]{0,128}[\d!@#$%^&*])[^\s\"'`]{5,128})",
    re.IGNORECASE,
)
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----([^-]{16,20000})-----END")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")


class ShownLeaf(NamedTuple):
    """A text or whole number that a judge may be shown."""

    key: str
    """The nearest key; empty outside objects."""
    text: str
    number: bool


def iter_leaves(trace: Trace) -> Iterator[ShownLeaf]:
    """Yield every text and whole number that a judge may be shown, with its nearest key, including members in JSON text.

    It skips the state, which no judge is shown and whose keys may be the very identifiers to mask.
    """
    values: list[JsonValue] = [trace.answer, *(message.text for message in trace.messages)]
    for tool in trace.tools or ():
        values += [cast("JsonValue", part) for part in (tool.description, tool.parameters, tool.output_schema)]
    for step in trace.steps:
        values += [cast("JsonValue", step.call.arguments), step.call.raw]
        values += [step.result.content] if step.result is not None else []
    for value in values:
        for leaf in _walk(value):
            yield leaf
            for member in _MEMBER.finditer(leaf.text):
                yield ShownLeaf(member[1], member[2] or member[3], member[2] is None)


def _walk(value: JsonValue, key: str = "") -> Iterator[ShownLeaf]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield ShownLeaf(name, "", False)
            yield from _walk(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, key)
    elif isinstance(value, str) or is_number(value):
        yield ShownLeaf(key, str(value), not isinstance(value, str))


def is_number(value: JsonValue) -> bool:
    """Whether the value is a number that may be sensitive: whole, not negative, with at most 128 digits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**MAX_LENGTH


def list_sensitive(leaves: Sequence[ShownLeaf], what: frozenset[SensitiveKind]) -> list[Sensitive]:
    """List the values of these kinds in order, each once, however many spellings of it were found."""
    found: dict[str, set[Sensitive]] = {}
    for value in _find_sensitive(leaves, what):
        found.setdefault(value.core, set()).add(value)
    return [
        min(same) if len({value.text for value in same}) == 1 else min(same)._replace(how="loose")
        for _, same in sorted(found.items())
    ]


def _find_sensitive(leaves: Sequence[ShownLeaf], what: frozenset[SensitiveKind]) -> Iterator[Sensitive]:
    amounts = {leaf.text for leaf in leaves if leaf.number and _is_amount(leaf)}
    for leaf in leaves:
        words = frozenset(_split_key(leaf.key))
        for sort in what:
            for text, how in _FINDERS[sort](leaf, words):
                if sort == "secrets" or text not in amounts:
                    yield from _split_pieces(text, how)


def _split_key(key: str) -> list[str]:
    return [part.lower() for part in _KEY_PARTS.findall(key[:MAX_LENGTH])]


def _is_amount(leaf: ShownLeaf) -> bool:
    words = _split_key(leaf.key)
    if _AMOUNTS & set(words):
        return True
    return len(leaf.text) < 9 and not _names_identifier(words) and not set(words) & (_SECRET | _CONTACT)


def _names_identifier(words: Sequence[str]) -> bool:
    """Whether a key with these words names an identifier."""
    if not words or _PUBLIC & set(words):
        return False
    if words[-1] in _ENDS:
        return words[-1] not in ("code", "codes") or len(words) == 1 or bool(_NOUNS & set(words))
    return words[-1].removesuffix("s") in _NOUNS


def _find_secrets(leaf: ShownLeaf, words: frozenset[str]) -> Iterator[tuple[str, Spelling]]:
    named = _SECRET & words or (_SECRET_KINDS & words and words & {"key", "token"})
    if named and 3 <= len(leaf.text) <= MAX_LENGTH and not _MEMBER.search(leaf.text):
        yield leaf.text, "exact"
    for shape in (_KEYS, _TOKEN, _SAID_SECRET, _PEM):
        for match in shape.finditer(leaf.text):
            yield match[match.lastindex or 0].rstrip(".,;:"), "exact"
    for match in _CARD.finditer(leaf.text):
        if is_card(extract_core(match[0])):
            yield match[0], "loose"
    for match in _IBAN.finditer(leaf.text):
        if _is_iban(match[0].replace(" ", "")):
            yield match[0], "loose"


def is_card(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1, Luhn)."""
    odd = sum(int(d) for d in digits[-1::-2])
    return (odd + sum(sum(divmod(2 * int(d), 10)) for d in digits[-2::-2])) % 10 == 0 and len(set(digits)) > 1


def _is_iban(text: str) -> bool:
    return 15 <= len(text) <= 34 and int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1


def _find_identifiers(leaf: ShownLeaf, words: frozenset[str]) -> Iterator[tuple[str, Spelling]]:
    for match in _UUID.finditer(leaf.text):
        yield match[0], "loose"
    if _looks_like_identifier(leaf, _split_key(leaf.key)) and not words & _SECRET:
        yield leaf.text, _choose_how(leaf.text)
    for match in _NAMED_IN_PROSE.finditer(leaf.text):
        if _is_free(match[1]):
            yield match[1], _choose_how(match[1])


def _looks_like_identifier(leaf: ShownLeaf, words: Sequence[str]) -> bool:
    if not _names_identifier(words) or not _IDENTIFIER.fullmatch(leaf.text) or _MAIL.fullmatch(leaf.text):
        return False
    if not any(c.isdigit() for c in leaf.text):
        return leaf.text.isupper() and leaf.text.isalpha() and 5 <= len(leaf.text) <= 10
    return _is_free(leaf.text)


def _is_free(text: str) -> bool:
    """Whether the text may be an identifier: no date, no year, and long enough not to be a quantity."""
    core = extract_core(text)
    return len(core) >= 4 and not _DATE.fullmatch(text) and not (len(core) == 4 and core[:2] in ("19", "20"))


def _choose_how(text: str) -> Spelling:
    core = extract_core(text)
    if core.isdigit():
        return "loose" if len(core) >= 9 else "folded"
    return "loose" if len(core) >= 5 and any(c.isdigit() for c in core) else "exact"


def _find_contacts(leaf: ShownLeaf, words: frozenset[str]) -> Iterator[tuple[str, Spelling]]:
    for match in _MAIL.finditer(leaf.text):
        yield match[0], "folded"
    for match in _PHONE.finditer(leaf.text):
        yield match[0], "loose"
    digits = extract_core(leaf.text) if len(leaf.text) <= 24 else ""
    if words & _CONTACT and digits.isdigit() and 7 <= len(digits) <= 15:
        yield leaf.text, "loose"


_FINDERS: Mapping[SensitiveKind, Callable[[ShownLeaf, frozenset[str]], Iterator[tuple[str, Spelling]]]] = {
    "secrets": _find_secrets,
    "identifiers": _find_identifiers,
    "contacts": _find_contacts,
}


def _split_pieces(text: str, how: Spelling) -> Iterator[Sensitive]:
    """Yield the value as one entry or, if it is too long, each of its longer runs as an entry."""
    runs = RUN.findall(text)
    if len(runs) <= MAX_RUNS and len(text) <= MAX_LENGTH:
        core = "".join(runs)
        if runs and any(c.isascii() for c in core):
            end = text.rindex(runs[-1]) + len(runs[-1])
            yield Sensitive(core.translate(FOLD), text[text.index(runs[0]) : end], how)
        return
    for run in runs:
        if len(run) >= 6:
            yield Sensitive(run.translate(FOLD), run, "exact")


def extract_core(text: str) -> str:
    """Return the letters and digits of a text, with ASCII letters in lower case.

    >>> extract_core("HAT-069 b")
    'hat069b'
    """
    return "".join(RUN.findall(text)).translate(FOLD)
