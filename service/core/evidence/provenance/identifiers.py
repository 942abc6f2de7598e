"""Locate identifiers: arguments that can only be right if somebody gave them."""

from __future__ import annotations

import re

from service.core.evidence.provenance.located import LeafOrigin, leave_open, locate_at, locate_nowhere, suspect
from service.core.evidence.provenance.parameters import CallParameter
from service.core.evidence.provenance.sources import SourceIndex
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.json.values import format_value

_NAMED = split_words("id ids uuid guid identifier email phone sku serial iban")
_NUMBERED = split_words(
    "account order invoice tracking confirmation booking reservation ticket card customer user member flight policy "
    "case claim reference transaction shipment passport phone"
)
_SELF_MADE = split_words("idempotency nonce correlation client trace span request session password secret salt seed")
"""Words in the names of values that a caller makes up by design."""
_GENERIC_HOSTS = split_words("email mail example test domain company")
"""Words in host names that name nobody in particular."""
_MAKES = split_words("create add register generate new signup insert make")
_TINY = 3
"""For values no longer than this, a match or the lack of one says little."""
_WHOLE = re.compile(r"[\w.@:+#/-]{3,128}")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")


def is_identifier(value: str, parameter: CallParameter, tool_name: str) -> bool:
    """Whether a text is an identifier that must come from somewhere, judging by its form and its parameter's name.

    >>> (
    ...     is_identifier("HAT069", CallParameter("flight_number", {}), "f"),
    ...     is_identifier("JFK", CallParameter("origin", {}), "f"),
    ... )
    (True, False)
    >>> (
    ...     is_identifier("gpt-4", CallParameter("model", {}), "f"),
    ...     is_identifier("k-1", CallParameter("idempotency_key", {}), "f"),
    ... )
    (False, False)
    """
    if not _WHOLE.fullmatch(value) or parameter.is_closed or _SELF_MADE & set(parameter.words):
        return False
    if parameter.words[-1:] and parameter.words[-1] in ("id", "email") and _MAKES & set(split_tokens(tool_name)):
        return False  # the name of the new object
    if _MAIL.fullmatch(value):
        return True
    return any(c.isdigit() for c in value) and _names_identifier(parameter)


def _names_identifier(parameter: CallParameter) -> bool:
    words = parameter.words
    if not words:
        return False
    if _NAMED & set(words[-2:]):
        return True
    return words[-1] in ("number", "no", "num", "code", "ref", "reference") and bool(_NUMBERED & set(words))


def locate_identifier(path: str, value: str, parameter: CallParameter, sources: SourceIndex, before: int) -> LeafOrigin:
    """Locate an identifier: as it is, spelt differently, or in pieces that were given separately.

    It comes from nowhere only if code read all that the model could read and none of it has the identifier in any form.
    """
    found = sources.find(value, before)
    if found is not None:
        return locate_at(path, found)
    spelt = sources.find_spelt(sources.spelt, value, before) if len(value) > _TINY else None
    if spelt is not None:
        return locate_at(path, spelt, "spelling")
    words = split_tokens(value)
    pieces = [sources.find(word, before) for word in words if any(c.isdigit() for c in word)]
    if len(words) > 1 and pieces and all(pieces) and pieces[0] is not None:
        return locate_at(path, pieces[0], "concatenation")
    return _doubt(path, value, parameter, sources, before) or locate_nowhere(
        path, f"{format_value(value)} is in no message and no result before the call"
    )


def _doubt(path: str, value: str, parameter: CallParameter, sources: SourceIndex, before: int) -> LeafOrigin | None:
    """Return why an identifier that nobody gave may have a source after all, as open or suspected; None if nothing does."""
    text = format_value(value)
    if sources.too_long or sources.spelt.too_long:
        return leave_open(path, "not all of the trace was read")
    kin = sources.spelt.find_kin(value, before)
    if kin is not None:
        return suspect(path, f"of {text} only the digits, or another form, were given", kin)
    own = sources.find_spelt(sources.own, value, before)
    if own is not None:
        writer = "the assistant" if own.agent is None else f"the agent {own.agent}"
        return suspect(path, f"{text} stands only in what {writer} wrote or in the description of a tool", own)
    gap = sources.find_gap(before)
    if gap is not None:
        return suspect(path, f"{text} is in nothing that could be read, and {gap} could not")
    if _is_public(value, parameter, sources, before):
        return suspect(path, f"{text} is in no message and no result before the call, but may be publicly known")
    return None


def _is_public(value: str, parameter: CallParameter, sources: SourceIndex, before: int) -> bool:
    """Whether a model may know it from elsewhere: a phone number, an address at a host that is mentioned, a short number."""
    if "@" in value:
        named = set(split_tokens(value.partition("@")[2])[:-1]) - _GENERIC_HOSTS
        return any(sources.find(word, before) for word in sorted(named))
    return "phone" in parameter.words or (value.isdecimal() and len(value) <= _TINY)
