"""The matcher for dates and times. It fills in nothing from today, from the machine's zone or from its language."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from service.core.critics.base import Match, Number, ValueCritic, build_mismatch
from service.core.critics.moments import Moment, check_format, find_zone, read
from service.core.json.values import equals, format_value
from service.core.models.kinds import Several

_MAX_DISTANCE_S = 10**12  # more than between any two dates


class DateTime(ValueCritic):
    """A moment near the expected one: an ISO 8601 text, or one in a listed format.

    It passes within `tolerance` seconds; beyond, the value is 0, or falls linearly from 1 at the tolerance to 0 at `cutoff`.
    A date alone means its midnight. A moment with a zone and one without never match, unless `assume_zone` gives the zone of
    the latter; where clocks are set back, the first of the two moments is meant.

    >>> noon = DateTime(value="2026-05-01T12:00:00Z", tolerance=60, cutoff=180)
    >>> [noon.match(f"2026-05-01T{time}").value for time in ("14:00+02:00", "12:01Z", "12:02Z", "12:03Z", "12:00")]
    [1.0, 1.0, 0.5, 0.0, 0.0]
    >>> [noon.match(actual).value for actual in ("2026-05-01", "noon", "2026", 20260501, None)]
    [0.0, 0.0, 0.0, 0.0, 0.0]
    >>> DateTime(value="2026-05-01", formats=["%d.%m.%Y"]).match("1.5.2026").value
    1.0
    >>> DateTime(value="2026-05-01T12:00+09:00", assume_zone="Asia/Tokyo").match("2026-05-01 12:00").value
    1.0
    """

    cost: ClassVar[int] = 3
    kind: Literal["datetime"] = "datetime"
    tolerance: Number = Field(default=0, ge=0, le=_MAX_DISTANCE_S)
    """The distance allowed, in seconds."""
    cutoff: Number | None = Field(default=None, le=_MAX_DISTANCE_S)
    """The distance in seconds at which the value reaches 0; at least `tolerance`."""
    formats: Several[str] = ()
    """strptime formats, tried in turn after ISO 8601, with English month names. Each names a whole date or none: one without a
    date reads a time of day, which compares only with other times of day, within one day and as written."""
    assume_zone: str | None = None
    """The zone of dates and times that name none: UTC, a name such as Europe/Berlin, or an offset such as +09:00."""

    @field_validator("formats")
    @classmethod
    def _check_formats(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(check_format, formats))

    @field_validator("assume_zone")
    @classmethod
    def _check_zone(cls, name: str | None) -> str | None:
        if name is not None:
            find_zone(name)
        return name

    @model_validator(mode="after")
    def _check_settings(self) -> DateTime:
        if self.cutoff is not None and self.cutoff < self.tolerance:
            raise ValueError("cutoff must be tolerance or more")
        if self.has_value and self._read(self.value) is None:
            forms = "an ISO 8601 date or time, or in one of the formats"
            raise ValueError(f"the value must be {forms}, not {format_value(self.value)}")
        return self

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:
        """Return the value in [0, 1]. If the expected value is no date or time, only the identical value matches."""
        want = self._read(expected)
        if want is None:
            return Match(1.0, True) if equals(actual, expected) else build_mismatch(actual, expected)
        got = self._read(actual)
        if got is None:
            why = f"{format_value(actual, 40)} is not a date or time that can be read"
            return build_mismatch(actual, expected, why=why)
        if why := got.explain_incomparable(want):
            return build_mismatch(actual, expected, why=why)
        return self._grade(got, want, actual, expected)

    def _read(self, value: JsonValue) -> Moment | None:
        return read(value, formats=self.formats, assume_zone=self.assume_zone) if isinstance(value, str) else None

    def _grade(self, got: Moment, want: Moment, actual: JsonValue, expected: JsonValue) -> Match:
        seconds = abs(got.instant - want.instant).total_seconds()
        if seconds <= self.tolerance:
            return Match(1.0, True)
        value = 0.0
        if self.cutoff is not None and seconds < self.cutoff:
            value = (self.cutoff - seconds) / (self.cutoff - self.tolerance)
        midnight = ", a date being its midnight" if got.date_only != want.date_only else ""
        return build_mismatch(actual, expected, value=value, why=f"{seconds:.15g} s apart{midnight}")
