"""Compare databases as tau-bench's code does, and calls as tau2-bench's does.

Source: sierra-research/tau-bench, `tau_bench/envs/base.py`: two states are the same if Python writes the same text for them,
objects as sorted pairs and arrays as tuples. So 1 is not 1.0 and true is not 1, an object equals the array of its sorted pairs,
and a text that is the whole state equals the number it spells. sierra-research/tau2-bench, `data_model/tasks.py`: if a gold
action names no arguments to compare, those of the actual call are compared, so that leaving all of them out is right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import JsonValue


def is_same_state(one: JsonValue, other: JsonValue) -> bool:
    """Whether tau-bench's hashes of two states are the same.

    >>> is_same_state({"b": 1, "a": [2]}, {"a": [2], "b": 1}), is_same_state({"b": 1}, {"b": 1.0})
    (True, False)
    >>> is_same_state({"b": 1}, [["b", 1]]), is_same_state("1", 1), is_same_state(["1"], [1])
    (True, True, False)
    """
    return str(_freeze(one)) == str(_freeze(other))


def _freeze(value: JsonValue) -> object:
    if isinstance(value, dict):
        return tuple([(key, _freeze(value[key])) for key in sorted(value)])
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def is_same_action(
    made: Mapping[str, JsonValue], gold: Mapping[str, JsonValue], compared: Collection[str] | None = None
) -> bool:
    """Whether tau2-bench accepts a call's arguments as those of a gold action of the same name.

    >>> is_same_action({}, {"a": 1}), is_same_action({"a": 1, "b": 2}, {"a": 1}), is_same_action({"a": 2}, {"a": 1}, [])
    (True, False, True)
    """
    names = made.keys() if compared is None else compared
    return {name: made[name] for name in names if name in made} == {name: gold[name] for name in names if name in gold}
