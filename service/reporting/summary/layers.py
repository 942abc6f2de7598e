"""The three layers: whether a call is well formed, whether it is the right one, and whether it had the right effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from service.core.outcome import Scored, is_open
from service.reporting.summary.samples import CRITERION, Sample, list_outcomes
from service.stats.rates import CaseBounds, Estimate, IntervalMethod, estimate_with_bounds

LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("schema", ("schema",)),
    ("ast", ("tool_name", "arguments", "ast", "calls")),
    ("execution", ("exec", "state", "results")),
)
"""The three layers, and the criteria that each rests on."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One of the three layers: well formed (schema), the right call (ast), the right effect (execution).

    `passed` is over the cases in which the layer was checked; `unmeasured` counts those in which an earlier failure blocked
    it, or the content was missing. A layer with anything open counts against it and for it. Only schema-valid calls can be
    right calls.
    """

    name: str
    passed: Estimate
    unmeasured: int


def summarize_layers(samples: Sequence[Sample], interval: IntervalMethod) -> tuple[Layer, ...]:
    """Summarize all three, in order."""
    return tuple(_build_layer(samples, name, interval) for name, _ in LAYERS)


def _build_layer(samples: Sequence[Sample], name: str, interval: IntervalMethod) -> Layer:
    states: list[tuple[str | None, LayerState]] = [
        (sample.group, _check_layer(sample, name)) for sample in samples if _has_layer(sample, name)
    ]
    bounds = [CaseBounds(group, *_STATE_BOUNDS[state]) for group, state in states if state != "unmeasured"]
    return Layer(name, estimate_with_bounds(bounds, interval), len(states) - len(bounds))


LayerState = Literal["held", "broken", "open", "unmeasured"]
_STATE_BOUNDS: dict[LayerState, tuple[float, float, float | None]] = {
    "held": (1.0, 1.0, 1.0),
    "broken": (0.0, 0.0, 0.0),
    "open": (0.0, 1.0, None),
}


def _has_layer(sample: Sample, name: str) -> bool:
    return any(sample.applies(CRITERION + one) for one in dict(LAYERS)[name])


def _check_layer(sample: Sample, name: str) -> LayerState:
    """Return the state of a layer in a case."""
    if name == "ast":
        return _check_calls(sample)
    names, report = dict(LAYERS)[name], sample.report
    outcomes = [o for one in report.criteria if one.id in names for o in list_outcomes(one, report)]
    scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    if any(outcome.value < 1.0 for outcome in scored):
        return "broken"
    if any(map(is_open, outcomes)):
        return "open"
    return "held" if scored else "unmeasured"


def _check_calls(sample: Sample) -> LayerState:
    """Check the `ast` layer: a call that was blocked (wrong tool, or none due) is not the right one, nor is an invalid one."""
    bounds = [sample.bounds[CRITERION + one] for one in dict(LAYERS)["ast"] if CRITERION + one in sample.bounds]
    if not bounds:
        return "unmeasured"
    schema = _check_layer(sample, "schema")
    if schema == "broken" or min(high for _, high in bounds) < 1.0:
        return "broken"
    return "open" if schema == "open" or min(low for low, _ in bounds) < 1.0 else "held"
