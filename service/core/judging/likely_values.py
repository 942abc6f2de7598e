"""The values of a reply's labels over the probabilities of their tokens, as in G-Eval (Liu et al. 2023)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import exp, fsum

from service.core.judging.grades import CANNOT_TELL, shade_value
from service.core.judging.judges import Judge
from service.core.judging.prompts import Completion, Token

MAX_VAGUE_SHARE = 0.01
"""The largest share of probability on tokens that could begin more than one label."""


def read_likely_values(completion: Completion, judge: Judge, labels: Sequence[str]) -> list[float | None] | None:
    """Return the mean value over the labels' probabilities, for each label in the reply, as in G-Eval (Liu et al. 2023).

    Values pass through `shade_value`. An item is None where the tokens are not conclusive; the whole is None where they do
    not spell these labels in this order.
    """
    whole = "".join([token.text for token in completion.tokens])
    if not completion.tokens or whole.strip() != completion.text.strip():
        return None
    places = [found for found in _LABEL.finditer(whole) if found[1] in judge.menu]
    if [found[1] for found in places] != list(labels):
        return None
    starts = list(accumulate([len(token.text) for token in completion.tokens], initial=0))
    found = [completion.tokens[bisect_right(starts, place.start(1)) - 1] for place in places]
    return [_compute_expected_value(token, judge, label) for token, label in zip(found, labels, strict=True)]


_LABEL = re.compile(r'"label"\s*:\s*"((?:[^"\\]|\\.)*)"')


def _compute_expected_value(token: Token, judge: Judge, label: str) -> float | None:
    """Return the mean value over the labels' probabilities at the label's first token; None if it is not conclusive.

    Each likely token counts for the one label it begins. A token that begins several labels ("1" of 1 and 10) tells
    nothing. `cannot_tell` has no value and is left out.
    """
    mass: dict[str, float] = {}
    vague = 0.0
    for text, logprob in token.likeliest:
        start = text.strip(' "')
        meant = [name for name in judge.menu if start and name.startswith(start)]
        if len(meant) == 1:
            mass[meant[0]] = mass.get(meant[0], 0.0) + exp(min(0.0, logprob))
        elif meant:
            vague += exp(min(0.0, logprob))
    mass.pop(CANNOT_TELL, None)
    total = fsum(mass.values())
    if label not in mass or total <= 0.0 or vague > MAX_VAGUE_SHARE * total:
        return None
    shades = [share * shade_value(judge.claims, judge.scale[name].value) for name, share in mass.items()]
    return min(1.0, fsum(shades) / total)
