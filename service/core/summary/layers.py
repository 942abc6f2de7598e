"""The three layers: is a call well formed, is it the right one, and did it have the right effect?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.core.outcome import Scored
from service.core.rates import Estimate, IntervalOf, Part, estimate
from service.core.summary.samples import CRITERION, Sample, outcomes_of

LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("schema", ("schema",)),
    ("ast", ("tool_name", "arguments", "ast", "calls")),
    ("execution", ("exec", "state", "results")),
)
"""The three layers, and the criteria that each rests on."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One of the three layers: well formed (schema), the right call (ast), the right effect (execution).

    `passed` is over the cases in which the layer was looked at; `unmeasured` counts those in which something before it
    blocked it, or the content was not there. Only schema-valid calls are right calls.
    """

    name: str
    passed: Estimate
    unmeasured: int


def layers_of(samples: Sequence[Sample], interval: IntervalOf) -> tuple[Layer, ...]:
    """All three, in their order."""
    return tuple(_layer(samples, name, interval) for name, _ in LAYERS)


def _layer(samples: Sequence[Sample], name: str, interval: IntervalOf) -> Layer:
    told = [(sample.group, _layer_held(sample, name)) for sample in samples if _has_layer(sample, name)]
    parts = [Part(group, held) for group, held in told if held is not None]
    return Layer(name, estimate(parts, interval), len(told) - len(parts))


def _has_layer(sample: Sample, name: str) -> bool:
    return any(sample.applies(CRITERION + one) for one in dict(LAYERS)[name])


def _layer_held(sample: Sample, name: str) -> bool | None:
    """Whether a layer holds of a case; None where nothing of it was looked at."""
    if name == "ast":
        return _right_calls(sample)
    wanted, report = dict(LAYERS)[name], sample.report
    outcomes = [o for one in report.criteria if one.id in wanted for o in outcomes_of(one, report)]
    scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    return all(outcome.value == 1.0 for outcome in scored) if scored else None


def _right_calls(sample: Sample) -> bool | None:
    """A call that was blocked (of the wrong tool, or where none was due) is not the right one, nor one that is not valid."""
    values = [sample.values[CRITERION + one] for one in dict(LAYERS)["ast"] if CRITERION + one in sample.values]
    if not values:
        return None
    return min(values) == 1.0 and _layer_held(sample, "schema") is not False
