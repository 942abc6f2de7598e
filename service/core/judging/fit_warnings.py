"""Whether a fit applies to a judge, and warnings about judges whose answers stay open, before anybody waits for a verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from service.core.judging.fits.fit import Fit
from service.core.judging.judges import Judge
from service.core.judging.notes import is_same_model
from service.core.judging.questions import ASSEMBLY

IN_USE = "in use"


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
    known = {(judge.id, judge.digest, judge.models): judge for judge in judges}
    for name, criterion in sorted({(fit.judge, fit.criterion) for fit in fits}):
        own = [fit for fit in fits if (fit.judge, fit.criterion) == (name, criterion)]
        evidence = shown.get((name, criterion), ())
        for judge in [judge for (one, *_), judge in sorted(known.items()) if one == name]:
            for jury in list_juries(judge, list_models(criterion, name)):
                states = [(find_fit_state(fit, judge, [jury], evidence, route), fit.model) for fit in own]
                nearest = max(states)[0]
                if nearest[1] != IN_USE:
                    models = ", ".join(sorted({model for state, model in states if state == nearest}))
                    why = f"its fits ({models}) are {nearest[1]}. Fit it, or remove these fits"
                    yield f"{name} on {criterion}: what {' + '.join(jury)} says stays open, for {why}"


def list_juries(judge: Judge, models: Iterable[str]) -> Sequence[Sequence[str]]:
    """List who may answer: the jury that the judge names, else each of these models alone."""
    return [judge.models] if judge.models else [(model,) for model in models]


def find_fit_state(
    fit: Fit,
    judge: Judge,
    juries: Sequence[Sequence[str]] = (),
    evidence: Collection[str] = (),
    route: str | None = None,
) -> tuple[int, str]:
    """Say whether a fit decides (`IN_USE`) or why not, and how near it comes to that. What is not given is not looked at."""
    obstacles = (
        (bool(juries) and not any(_is_fit_for(fit, jury) for jury in juries), "of another model"),
        ((judge.digest, ASSEMBLY) != (fit.judge_digest, fit.assembly), "of another version of the judge"),
        (bool(evidence) and fit.evidence not in evidence, "made with other evidence than is shown"),
        (route not in (None, fit.route), "made for another route to the model"),
        (bool(fit.refusal), fit.discrimination.use if fit.discrimination else "not tested against chance"),
        (not fit.usable, "of too few labels, or of constructed ones"),
        (fit.stale, "too old"),
    )
    return next(((n, why) for n, (stands, why) in enumerate(obstacles) if stands), (len(obstacles), IN_USE))


def _is_fit_for(fit: Fit, jury: Sequence[str]) -> bool:
    """Whether the fit is for these models, or dated versions of them, in any order."""
    fitted = fit.model.split("+")
    return len(fitted) == len(jury) and all(any(is_same_model(one, name) for name in fitted) for one in jury)
