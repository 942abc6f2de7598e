"""Identifiers: arguments that can only be right if somebody gave them."""

from __future__ import annotations

import re

from service.core.evidence.located import Located, at_place, from_nowhere, left_open
from service.core.evidence.parameters import Parameter
from service.core.evidence.sources import Sources
from service.core.evidence.words import listed, tokens
from service.core.values import shown

_NAMED = listed("id ids uuid guid identifier email phone sku serial iban")
_NUMBERED = listed(
    "account order invoice tracking confirmation booking reservation ticket card customer user member flight policy "
    "case claim reference transaction shipment passport phone"
)
_OWN = listed("idempotency nonce correlation client trace span request session password secret salt seed")
"""Names of values that a caller makes up by design."""
_MAKES = listed("create add register generate new signup insert make")
_WHOLE = re.compile(r"[\w.@:+#/-]{3,128}")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")


def is_identifier(value: str, parameter: Parameter, tool_name: str) -> bool:
    """Whether a text is an identifier that must come from somewhere, going by its form and its parameter's name.

    >>> is_identifier("HAT069", Parameter("flight_number", {}), "f"), is_identifier("JFK", Parameter("origin", {}), "f")
    (True, False)
    >>> is_identifier("gpt-4", Parameter("model", {}), "f"), is_identifier("k-1", Parameter("idempotency_key", {}), "f")
    (False, False)
    """
    if not _WHOLE.fullmatch(value) or parameter.is_closed or _OWN & set(parameter.words):
        return False
    if parameter.words[-1:] and parameter.words[-1] in ("id", "email") and _MAKES & set(tokens(tool_name)):
        return False  # the new thing's own name
    if _MAIL.fullmatch(value):
        return True
    return any(c.isdigit() for c in value) and _names_one(parameter)


def _names_one(parameter: Parameter) -> bool:
    words = parameter.words
    if not words:
        return False
    if _NAMED & set(words[-2:]):
        return True
    return words[-1] in ("number", "no", "num", "code", "ref", "reference") and bool(_NUMBERED & set(words))


def locate_identifier(path: str, value: str, sources: Sources, before: int) -> Located:
    """An identifier: its words together somewhere, the same letters otherwise spaced, or pieces that were given apart."""
    place = sources.find(value, before)
    if place is not None:
        return at_place(path, place)
    words = tokens(value)
    spelt = sources.find_compact("".join(words), before)
    if spelt is not None:
        return at_place(path, spelt, "spelling")
    pieces = [sources.find(word, before) for word in words if any(c.isdigit() for c in word)]
    if len(words) > 1 and pieces and all(pieces) and pieces[0] is not None:
        return at_place(path, pieces[0], "concatenation")
    if sources.too_long:
        return left_open(path, "not all of the trace was read")
    return from_nowhere(path, f"{shown(value)} is in no message and no result before the call")
