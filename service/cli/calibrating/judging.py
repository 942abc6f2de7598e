"""Build the engine whose judges are calibrated."""

from __future__ import annotations

from service.asking.judging import Judges
from service.cli.context import read_settings
from service.engine import Engine
from service.errors import NO_JUDGE_MODEL, SettingsError
from service.wiring import build_engine


def build_judging_engine() -> tuple[Engine, Judges]:
    """Build the engine from the settings, and return it with its judges; SettingsError if no judge model is set."""
    engine = build_engine(read_settings())
    if engine.judging is None:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", NO_JUDGE_MODEL)
    return engine, engine.judging.judges
