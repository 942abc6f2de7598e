"""Step 3 of the contract, the content: are the arguments the expected ones?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from math import fsum
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field, JsonValue

from service.core.alignment.binding import BoundArgument, bind
from service.core.case import Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.critics import MATCHED, Critic, Match, OpenComparison, WordsComparison
from service.core.expectations.expectation import CallPattern, ExtraArguments
from service.core.expectations.templates import Template
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.free_texts import TextSoftener
from service.core.gates.schema import score_unread
from service.core.gates.tool_name import NO_CALLS, score_all_missing, score_name, settle_pair
from service.core.json.pointers import escape_token
from service.core.json.values import equals
from service.core.models.kinds import TaggedUnion
from service.core.models.light import light
from service.core.outcome import PERFECT, Finding, OpenValue, Outcome, PartialOutcome, Scored, Skipped
from service.core.schemas import Validator
from service.core.trace import Step
from service.core.weights import Weight, read_weight

ANY_ARGUMENTS = Skipped("not_applicable", "the expectation leaves the arguments free")


@light
class ArgumentIssue:
    """One argument that did not simply match. A finding says what is wrong; `match` may be that a cap forbade comparing."""

    weight: float
    match: Match | OpenComparison
    code: str
    name: str

    @property
    def worth(self) -> float:
        """Its value; what is for a judge counts in full here, where calls are paired."""
        return self.match.value if isinstance(self.match, Match) else float(isinstance(self.match, WordsComparison))

    def open(self, step: Step) -> OpenValue:
        """What a judge is asked of it, or why nobody can say."""
        place = f"{build_call_path(step)}/arguments/{escape_token(self.name)}"
        if isinstance(self.match, WordsComparison):
            return OpenValue(self.match.words, self.match.value, place, self.weight)
        cause, reason = (
            (self.match.cause, self.match.reason) if isinstance(self.match, OpenComparison) else ("too_long", "")
        )
        return OpenValue("", None, place, self.weight, Skipped(cause, f"{self.name}: {reason}"))

    def build_finding(self, step: Step) -> Finding:
        """What is wrong with this argument, and where."""
        if isinstance(self.match, Match) and self.match.passed:
            message = f"{self.name}: {self.match.note or f'passes with a score of {self.match.value:.2f}'}"
            return Finding("close_match", message, f"{build_call_path(step)}/arguments/{escape_token(self.name)}")
        note = self.match.note if isinstance(self.match, Match) else self.match.reason
        return Finding(
            self.code, f"{self.name}: {note}", f"{build_call_path(step)}/arguments/{escape_token(self.name)}"
        )


@light
class Agreement:
    """All arguments of one pair: the weight of those that match, and the others one by one."""

    matched: float
    others: list[ArgumentIssue]


AGREED = Agreement(0.0, [])
"""Where all match, nothing is weighed."""


def _weigh_matched(
    bound: Mapping[str, BoundArgument], actual: Mapping[str, JsonValue], others: Iterable[ArgumentIssue]
) -> float:
    """The weight of the arguments that are given and are not among the others."""
    odd = {one.name for one in others}
    return fsum([one.weight for name, one in bound.items() if name in actual and name not in odd])


class ArgumentsGate(Check):
    """Critics by argument over the optimal alignment: the weighted mean of the arguments' scores for each pair.

    A missing call is 0; an unexpected one is for the name check to charge. A matcher in the expectation goes before the
    rubric's critic for that argument, and what neither names is compared exactly, or by `texts` where it is a free text. An
    extra argument counts as one that scored 0, unless the rubric says otherwise or the tool's schema requires it. Findings:
    `missing_argument`, `wrong_argument`, `extra_argument`, and `close_match` where a matcher passes with less than 1.0, or
    what is not the very same text.
    """

    kind: Literal["arguments"] = "arguments"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "tools"})
    critics: dict[str, Annotated[Critic, TaggedUnion()]] = Field(default={})
    """Critics by argument: a name (`amount`) or a JSON pointer (`/filter/price`)."""
    texts: Annotated[Critic, TaggedUnion()] | None = None
    """The critic of free texts that are not the expected ones: for values that no matcher compares, where the tool's schema
    declares a text without `enum`, `const`, `pattern` or `format` whose name speaks of no identifier, code, key, address or
    path. Absent: they are compared exactly."""
    weights: dict[str, Weight] = {}
    """Weights by argument name. Unlisted: 1, or `medium` where any weight is given by name."""
    extra: ExtraArguments = "count"
    """What an argument does that the expectation does not list."""
    fill_defaults: bool = True
    """Whether a default of the tool's schema stands in for an absent (not a null) argument, on both sides."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for each pair and each missing call."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        paired = [(case.subjects[pair.step], self._score_pair(case, pair)) for pair in case.alignment.pairs]
        return [*paired, *score_all_missing(case)] or [(WHOLE, NO_CALLS)]

    def pair_value(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """The score this pair would get."""
        if pattern.args is None:
            return _ANY
        if step.call.arguments is None:
            return 0.0
        agreement = self._find_agreement(case, pattern, step, step.call.arguments, chosen=False)
        return self._compute_value(pattern, agreement)

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:
        """Whether no matcher compares."""
        return all(bound.critic is None for bound in self._get_bound(case, pattern).values())

    def _score_pair(self, case: Case, pair: Pair) -> Outcome | PartialOutcome:
        pattern, step = pair.pattern, case.trace.steps[pair.step]
        if pattern.tool != step.call.name and not (right_tool := score_name(case, pair)).passed:
            return right_tool
        if pattern.args is None:
            return ANY_ARGUMENTS
        if step.call.arguments is None:
            return settle_pair(case, pair, score_unread(step))
        agreement = self._find_agreement(case, pattern, step, step.call.arguments, chosen=True)
        if not agreement.others:
            return PERFECT
        return settle_pair(case, pair, self._build_outcome(pattern, agreement, step))

    def _build_outcome(self, pattern: CallPattern, agreement: Agreement, step: Step) -> Outcome | PartialOutcome:
        unknown = [one for one in agreement.others if isinstance(one.match, OpenComparison)]
        decided = Agreement(agreement.matched, [one for one in agreement.others if isinstance(one.match, Match)])
        value, findings = (
            self._compute_value(pattern, decided),
            tuple([one.build_finding(step) for one in decided.others]),
        )
        passed = not any(isinstance(one.match, Match) and not one.match.passed for one in decided.others)
        if not unknown or self._has_forbidden(pattern, decided):
            return Scored(value, passed, findings)
        weight = fsum([decided.matched, *[one.weight for one in decided.others]])
        return PartialOutcome(tuple([one.open(step) for one in unknown]), weight, weight * value, passed, findings)

    def _has_forbidden(self, pattern: CallPattern, agreement: Agreement) -> bool:
        """Whether there is an argument that makes all others count for nothing."""
        extra = any(one.code == "extra_argument" for one in agreement.others)
        return extra and (pattern.extra_args or self.extra) == "forbid"

    def _compute_value(self, pattern: CallPattern, agreement: Agreement) -> float:
        """The weighted mean over all arguments; 1.0 where none weighs anything, 0.0 where one is forbidden."""
        others = agreement.others
        if not others:
            return 1.0
        if self._has_forbidden(pattern, agreement):
            return 0.0
        total = fsum([agreement.matched, *[one.weight for one in others]])
        gained = [one.weight * one.worth for one in others]
        return min(1.0, fsum([agreement.matched, *gained]) / total) if total else 1.0

    def _find_agreement(
        self, case: Case, pattern: CallPattern, step: Step, actual: Mapping[str, JsonValue], *, chosen: bool
    ) -> Agreement:
        """Worked out once for alignment and score: but where pairs are many, only those that agree are as good as chosen."""
        key = "agreement", id(self), id(pattern), step.index
        agreement = case.kept.get(key)
        if agreement is None:
            agreement = self._compare(case, pattern, step, actual, chosen=chosen)
            if case.has_few_pairs or agreement is AGREED:
                case.kept[key] = agreement
        return agreement  # pyright: ignore[reportReturnType] (what was put there)

    def _compare(
        self, case: Case, pattern: CallPattern, step: Step, actual: Mapping[str, JsonValue], *, chosen: bool
    ) -> Agreement:
        if not self.critics and equals(pattern.args, actual):  # pyright: ignore[reportArgumentType] (a matcher equals nothing)
            return AGREED
        bound = self._get_bound(case, pattern)
        schema = case.find_schema(step)
        if schema is not None and self.fill_defaults and schema.defaults:
            actual = {**find_stand_ins(schema, bound.values()), **actual}
        others = self._list_others(case, pattern, step, actual, bound, schema, chosen=chosen)
        if (pattern.extra_args or self.extra) != "allow" and not actual.keys() <= bound.keys():
            others += self._find_extras(bound, actual, schema, pattern)
        return Agreement(_weigh_matched(bound, actual, others), others) if others else AGREED

    def _list_others(  # noqa: PLR0913 (all that one comparison has)
        self,
        case: Case,
        pattern: CallPattern,
        step: Step,
        actual: Mapping[str, JsonValue],
        bound: Mapping[str, BoundArgument],
        schema: Validator | None,
        *,
        chosen: bool,
    ) -> list[ArgumentIssue]:
        """The expected arguments that do not simply match."""
        others: list[ArgumentIssue] = []
        for name, expected in bound.items():
            if not expected.weight:
                continue
            if name not in actual:
                if not expected.optional or (schema is not None and name in schema.required):
                    others.append(ArgumentIssue(expected.weight, _MISSING, "missing_argument", name))
                continue
            match = expected.match(actual[name])
            if match is MATCHED:
                continue
            match = self._match_softly(case, pattern, step, expected, actual[name], match, chosen=chosen)
            if match != MATCHED:
                others.append(ArgumentIssue(expected.weight, match, "wrong_argument", name))
        return others

    def _match_softly(  # noqa: PLR0913 (all that one comparison has)
        self,
        case: Case,
        pattern: CallPattern,
        step: Step,
        expected: BoundArgument,
        actual: JsonValue,
        strict: Match | OpenComparison,
        *,
        chosen: bool,
    ) -> Match | OpenComparison:
        """The comparison with free texts by their critic, where the strict one fails and that one passes."""
        if self.texts is None or strict == MATCHED or not (chosen or case.has_few_pairs):
            return strict
        name, tool, wanted = expected.name, step.call.name, (pattern.args or {})[expected.name]
        softer = case.once((id(self), id(pattern), tool, name), lambda: self._soften(case, tool, name, wanted))
        if softer is wanted and expected.critic is None:
            return strict
        match = bind(name, softer, critics={}).match(actual)
        return match if isinstance(match, Match) and match.passed else strict

    def _soften(self, case: Case, tool: str, name: str, wanted: Template) -> Template:
        listed = case.expectation is not None and case.expectation.gold is not None
        softener = TextSoftener(cast("Critic", self.texts), case.catalogue.get(tool), listed=listed)
        return softener.soften(wanted, (name,))

    def _get_bound(self, case: Case, pattern: CallPattern) -> dict[str, BoundArgument]:
        return case.once((id(self), id(pattern)), partial(self._bind, pattern))

    def _bind(self, pattern: CallPattern) -> dict[str, BoundArgument]:
        args = dict(sorted((pattern.args or {}).items()))
        weights: dict[str, Weight] = {**self.weights, **pattern.weights}
        if not weights:
            return {name: bind(name, value, critics=self.critics) for name, value in args.items()}
        usual = _find_usual_weight(weights)
        numbers = {name: read_weight(weights.get(name, usual)) for name in args}
        return {name: bind(name, value, critics=self.critics, weight=numbers[name]) for name, value in args.items()}

    def _find_extras(
        self,
        bound: Mapping[str, BoundArgument],
        actual: Mapping[str, JsonValue],
        schema: Validator | None,
        pattern: CallPattern,
    ) -> list[ArgumentIssue]:
        """Arguments nobody asked for; one the schema requires, or that holds its default, is none."""
        needed = schema.required if schema else frozenset[str]()
        usual = read_weight(_find_usual_weight({**self.weights, **pattern.weights}))
        return [
            ArgumentIssue(usual, _EXTRA, "extra_argument", name)
            for name in sorted(actual)
            if name not in bound
            and name not in needed
            and not (self.fill_defaults and _is_default(schema, name, actual[name]))
        ]


_ANY = 1.0 - 1e-5
"""What a pattern with free arguments gains by a call: a pattern that the call fits exactly goes before it."""
_EXTRA = Match(0.0, False, "not expected")
_MISSING = Match(0.0, False, "missing")


def _find_usual_weight(weights: Mapping[str, Weight]) -> Weight:
    return "medium" if any(isinstance(w, str) for w in weights.values()) else 1.0


def _is_default(schema: Validator | None, name: str, value: JsonValue) -> bool:
    return schema is not None and name in schema.defaults and equals(schema.defaults[name], value)


def find_stand_ins(schema: Validator, bound: Iterable[BoundArgument]) -> dict[str, JsonValue]:
    """The defaults for absent arguments. One the schema requires has none, and one that may be absent needs none."""
    needless = schema.required | {expected.name for expected in bound if expected.optional}
    return {name: value for name, value in schema.defaults.items() if name not in needless}
