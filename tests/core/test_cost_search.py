"""A search for the body of at most 100 kB that takes longest: nothing over a second of processor time, nor 200 MB.

A second is that of a machine which counts to ten million in a tenth of one.
"""

from __future__ import annotations

import json
import os
import resource
import time
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, target
from hypothesis import strategies as st
from scipy import optimize

from service import InputError
from service.engine import report_json, score
from service.reading.strict_json import Limits, parse_strictly
from tests.core.hostile_bodies import BODIES

MAX_BYTES = 100_000
MAX_COUNTS = 10.0
"""Most processor time of a body, as a multiple of what counting to ten million takes here."""
MAX_MEGABYTES = 200
PARTS = ("trace", "expected", "rubric")

pytestmark = pytest.mark.chaos


def written(body: dict[str, Any]) -> bytes:
    return json.dumps({**body, "judges": "off"}, separators=(",", ":")).encode()


@cache
def find_limit() -> float:
    """The most processor seconds that a body may take on this machine."""
    return MAX_COUNTS * min(_count() for _ in range(3))


def _count() -> float:
    start = time.process_time()
    for _ in range(10_000_000):
        pass
    return time.process_time() - start


def largest(make: Any) -> bytes:
    """The largest body of a kind within the limit, by halving."""
    low, high = 1, 2
    while len(written(make(high))) <= MAX_BYTES and high < MAX_BYTES:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if len(written(make(middle))) <= MAX_BYTES else (low, middle)
    return written(make(low))


def cost(data: bytes, tries: int = 3) -> tuple[float, float]:
    """The least of a few tries, for a busy machine makes processor time longer and never shorter."""
    seconds, megabytes = measure(data)
    while tries > 1 and seconds > find_limit():
        seconds, tries = min(seconds, measure(data)[0]), tries - 1
    return seconds, megabytes


def measure(data: bytes) -> tuple[float, float]:
    """Processor seconds and megabytes that scoring takes beyond an idle process, in a child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        try:
            report_json(score(parse_strictly(data, Limits())))
        except InputError:
            pass
        finally:
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            os.write(writing, json.dumps([time.process_time() - start, used / 1024]).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        seconds, megabytes = json.loads(pipe.read())
    os.waitpid(child, 0)
    return seconds, megabytes


@pytest.fixture(autouse=True, scope="module")
def warm() -> None:
    """What a server has loaded before its first request."""
    optimize.linear_sum_assignment(np.eye(20))
    score(json.loads(written(BODIES["one_tool_reversed"](20))))


@pytest.mark.parametrize("name", sorted(BODIES))
def test_no_kind_of_body_costs_more(name):
    seconds, megabytes = cost(largest(BODIES[name]))
    assert seconds <= find_limit()
    assert megabytes <= MAX_MEGABYTES


@st.composite
def mixtures(draw: st.DrawFn) -> bytes:
    """Parts of several kinds in one body, cut down until they fit."""
    kinds = [BODIES[draw(st.sampled_from(sorted(BODIES)))] for _ in PARTS]
    size = draw(st.integers(50, 3_000))
    while True:
        made = [kind(max(1, size)) for kind in kinds]
        body = {part: one[part] for part, one in zip(PARTS, made, strict=True) if part in one}
        data = written(body)
        if len(data) <= MAX_BYTES or size <= 1:
            return data
        size = size * 3 // 4


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")  # a body is long, and is to be seen
@settings(max_examples=1_500, deadline=None, suppress_health_check=list(HealthCheck))
@given(mixtures())
def test_no_mixture_costs_more(data):
    seconds, megabytes = cost(data)
    target(seconds)
    assert seconds <= find_limit()
    assert megabytes <= MAX_MEGABYTES
