"""Warn about judges whose answers will stay open because their fits do not apply, before anybody waits for a verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from service.core.judging.fits.fit import Fit
from service.core.judging.judges import Judge
from service.core.judging.notes import is_same_model
from service.core.judging.questions import ASSEMBLY


def warn_unfitted(
    fits: Collection[Fit],
    judges: Iterable[Judge],
    list_models: Callable[[str, str], Sequence[str]],
    shown: Mapping[tuple[str, str], Collection[str]] = MappingProxyType({}),
    *,
    route: str = "",
) -> Iterator[str]:
    """Yield a sentence for each judge and model whose verdicts stay open, in a fixed order.

    `list_models`: returns the models that may answer a criterion where its judge names none. `shown`: for each judge and
    criterion, the evidence digests (`JudgeCheck.evidence_digest`) in the rubrics at hand. `route`: the route to the models
    (`build_route`). A judge without any fit gets no warning: its own value counts, and every report says `uncalibrated`.
    """
    pairs = sorted({(fit.judge, fit.criterion) for fit in fits})
    known = {(judge.id, judge.digest, judge.models): judge for judge in judges}
    for name, criterion in pairs:
        own = [fit for fit in fits if (fit.judge, fit.criterion) == (name, criterion)]
        for judge in [judge for (one, *_), judge in sorted(known.items()) if one == name]:
            alone = [(model,) for model in list_models(criterion, name)]
            for jury in [judge.models] if judge.models else alone:
                if reason := _explain_open(own, judge, jury, shown.get((name, criterion), ()), route):
                    who = " + ".join(jury)
                    yield f"{name} on {criterion}: what {who} says stays open, for {reason}. Fit it, or remove these fits"


def _explain_open(
    own: Sequence[Fit], judge: Judge, jury: Sequence[str], shown: Collection[str], route: str
) -> str | None:
    """Return why none of a judge's fits applies, naming the nearest miss; None if one applies."""
    theirs = [fit for fit in own if is_fit_for(fit, jury)]
    if not theirs:
        return f"its fits are of {', '.join(sorted({fit.model for fit in own}))}"
    same = [fit for fit in theirs if (fit.judge_digest, fit.assembly) == (judge.digest, ASSEMBLY)]
    if not same:
        return "its fits were made for another version of the judge"
    if shown and not any(fit.evidence in shown for fit in same):
        return "its fits were made with other evidence beside the question than is shown"
    same = [fit for fit in same if fit.route == route]
    if not same:
        return "its fits were made by another way to the model: another address or another form of reply"
    if refused := [fit.refusal for fit in same if fit.refusal]:
        return f"its fit is {refused[0]}"
    usable = [fit for fit in same if fit.usable]
    if not usable:
        return "its fits have too few labels, or constructed ones"
    return None if any(not fit.stale for fit in usable) else "its fits are too old"


def is_fit_for(fit: Fit, jury: Sequence[str]) -> bool:
    """Whether the fit is for these models, or dated versions of them, in any order."""
    fitted = fit.model.split("+")
    return len(fitted) == len(jury) and all(any(is_same_model(one, name) for name in fitted) for one in jury)
