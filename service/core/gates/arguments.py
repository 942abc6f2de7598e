"""Step 3 of the contract, the content: are the arguments the expected ones?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from math import fsum
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field, JsonValue

from service.core.alignment.binding import BoundArgument, bind
from service.core.case import FREE_ARGUMENTS_WORTH, Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.critics import MATCHED, Critic, Match, OpenComparison, WordsComparison
from service.core.expectations.expectation import CallPattern, ExtraArguments
from service.core.expectations.templates import Template
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.free_texts import TextSoftener
from service.core.gates.schema import score_unread
from service.core.gates.tool_name import NO_CALLS, score_all_missing, score_name, settle_pair
from service.core.json.members import list_elements, list_objects
from service.core.json.pointers import escape_token
from service.core.json.values import SCALARS, equals
from service.core.models.kinds import TaggedUnion
from service.core.models.light import light
from service.core.outcome import PERFECT, Finding, OpenValue, Outcome, PartialOutcome, Scored, Skipped
from service.core.schemas import Validator
from service.core.trace import Step, ToolDef
from service.core.weights import Weight, read_weight

Arguments = Mapping[str, JsonValue]
_NO_TEXTS = SCALARS - {str}
FREE_ARGUMENTS = Skipped("not_applicable", "the expectation leaves the arguments free")


@light
class ArgumentIssue:
    """An argument that does not match exactly: a close match, a mismatch, or a comparison that code left open."""

    weight: float
    match: Match | OpenComparison
    code: str
    """The code of its finding."""
    name: str

    @property
    def worth(self) -> float:
        """Its value for the pairing of calls, where an argument left to a judge counts as free."""
        if isinstance(self.match, Match):
            return self.match.value
        return FREE_ARGUMENTS_WORTH if isinstance(self.match, WordsComparison) else 0.0

    def build_open_value(self, match: OpenComparison, step: Step) -> OpenValue:
        """Build the question to a judge, or the reason why the comparison stays open."""
        place = f"{build_call_path(step)}/arguments/{escape_token(self.name)}"
        if isinstance(match, WordsComparison):
            return OpenValue(match.words, match.value, place, self.weight)
        return OpenValue("", None, place, self.weight, Skipped(match.cause, f"{self.name}: {match.reason}"))

    def build_finding(self, step: Step) -> Finding:
        """Build the finding that says what is wrong with this argument, and where."""
        place = f"{build_call_path(step)}/arguments/{escape_token(self.name)}"
        if isinstance(self.match, Match) and self.match.passed:
            message = f"{self.name}: {self.match.note or f'passes with a score of {self.match.value:.2f}'}"
            return Finding("close_match", message, place)
        note = self.match.note if isinstance(self.match, Match) else self.match.reason
        return Finding(self.code, f"{self.name}: {note}", place)


@light
class Agreement:
    """How the arguments of one pair compare: the total weight of those that match, and the issues of all others."""

    matched: float
    issues: list[ArgumentIssue]


FULL_AGREEMENT = Agreement(0.0, [])
"""All arguments match; their weight does not matter then."""


class ArgumentsGate(Check):
    """Compare the arguments of each aligned pair, each by its critic: the weighted mean of their scores.

    A missing call scores 0; the name check charges for an unexpected one. A matcher in the expectation takes precedence over
    the rubric's critic for that argument. An argument that neither names is compared exactly, or by `texts` if it is a free
    text. An extra argument counts as one that scored 0, unless the rubric says otherwise or the tool's schema requires it.
    Findings: `missing_argument`, `wrong_argument`, `extra_argument`, and `close_match` where a matcher passes with less than
    1.0, or passes a text that is not identical.
    """

    kind: Literal["arguments"] = "arguments"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "tools"})
    critics: dict[str, Annotated[Critic, TaggedUnion()]] = Field(default={})
    """Critics by argument: a name (`amount`) or a JSON pointer (`/filter/price`)."""
    texts: Annotated[Critic, TaggedUnion()] | None = None
    """The critic that decides about free texts that differ from the expected ones: values that have no matcher, where
    the tool's schema declares a text without `enum`, `const`, `pattern` or `format`, and the name does not suggest an identifier,
    code, key, address or path. Absent: they are compared exactly."""
    weights: dict[str, Weight] = {}
    """Weights by argument name. Unlisted: 1, or `medium` where any weight is given by name."""
    extra: ExtraArguments = "count"
    """The effect of an argument that the expectation does not list."""
    fill_defaults: bool = True
    """Whether a default of the tool's schema fills in for an absent (not a null) argument, on both sides."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each pair and each missing call."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        paired = [(case.subjects[pair.step], self._score_pair(case, pair)) for pair in case.alignment.pairs]
        return [*paired, *score_all_missing(case)] or [(WHOLE, NO_CALLS)]

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """Return the score that this pair would get."""
        if pattern.args is None:
            return FREE_ARGUMENTS_WORTH
        if step.call.arguments is None:
            return 0.0
        agreement = self._find_agreement(case, pattern, step, step.call.arguments, aligned=False)
        return self._compute_value(pattern, agreement)

    def accepts_pair(self, case: Case, pattern: CallPattern, step: Step) -> bool:
        """Whether no argument is wrong; one that only a judge can compare is taken as right."""
        if pattern.args is None or step.call.arguments is None:
            return pattern.args is None
        issues = self._find_agreement(case, pattern, step, step.call.arguments, aligned=True).issues
        return all(isinstance(one.match, OpenComparison) or one.match.passed for one in issues)

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:
        """Whether every argument is compared by equality, with no matcher."""
        return all(bound.critic is None for bound in self._get_bound(case, pattern).values())

    def _score_pair(self, case: Case, pair: Pair) -> Outcome | PartialOutcome:
        pattern, step = pair.pattern, case.trace.steps[pair.step]
        if pattern.tool != step.call.name and not (right_tool := score_name(case, pair)).passed:
            return right_tool
        if pattern.args is None:
            return FREE_ARGUMENTS
        if step.call.arguments is None:
            return settle_pair(case, pair, score_unread(step))
        agreement = self._find_agreement(case, pattern, step, step.call.arguments, aligned=True)
        if not agreement.issues:
            return PERFECT
        return settle_pair(case, pair, self._build_outcome(pattern, agreement, step))

    def _build_outcome(self, pattern: CallPattern, agreement: Agreement, step: Step) -> Outcome | PartialOutcome:
        issues = agreement.issues
        opened = tuple(
            [one.build_open_value(one.match, step) for one in issues if isinstance(one.match, OpenComparison)]
        )
        decided = Agreement(agreement.matched, [one for one in issues if isinstance(one.match, Match)])
        value = self._compute_value(pattern, decided)
        findings = tuple([one.build_finding(step) for one in decided.issues])
        passed = not any(isinstance(one.match, Match) and not one.match.passed for one in decided.issues)
        if not opened or self._has_forbidden(pattern, decided):
            return Scored(value, passed, findings)
        weight = fsum([decided.matched, *[one.weight for one in decided.issues]])
        return PartialOutcome(opened, weight, weight * value, passed, findings)

    def _has_forbidden(self, pattern: CallPattern, agreement: Agreement) -> bool:
        """Whether an extra argument is forbidden and so zeroes the whole call."""
        extra = any(one.code == "extra_argument" for one in agreement.issues)
        return extra and (pattern.extra_args or self.extra) == "forbid"

    def _compute_value(self, pattern: CallPattern, agreement: Agreement) -> float:
        """Compute the weighted mean over all arguments; 1.0 where no argument has a weight, 0.0 where one is forbidden."""
        issues = agreement.issues
        if not issues:
            return 1.0
        if self._has_forbidden(pattern, agreement):
            return 0.0
        total = fsum([agreement.matched, *[one.weight for one in issues]])
        gained = [one.weight * one.worth for one in issues]
        return min(1.0, fsum([agreement.matched, *gained]) / total) if total else 1.0

    def _find_agreement(
        self, case: Case, pattern: CallPattern, step: Step, actual: Arguments, *, aligned: bool
    ) -> Agreement:
        """Compare a pair once, for both alignment and score; among many pairs, only full agreement is kept between the two.

        `aligned`: the alignment has chosen this pair. Among many pairs, only those may be compared with `texts`.
        """
        key = "agreement", id(self), id(pattern), step.index
        agreement = case.memo.get(key)
        if agreement is None:
            agreement = self._compare(case, pattern, step, actual, aligned=aligned)
            if case.has_few_pairs or agreement is FULL_AGREEMENT:
                case.memo[key] = agreement
        return agreement  # pyright: ignore[reportReturnType] (what this method stored)

    def _compare(self, case: Case, pattern: CallPattern, step: Step, actual: Arguments, *, aligned: bool) -> Agreement:
        if not self.critics and equals(pattern.args, actual):  # pyright: ignore[reportArgumentType] (a matcher equals nothing)
            return FULL_AGREEMENT
        bound = self._get_bound(case, pattern)
        schema = case.find_validator(step)
        if schema is not None and self.fill_defaults and schema.defaults:
            actual = {**find_fill_ins(schema, bound.values()), **actual}
        issues = self._list_issues(case, pattern, step, actual, schema, aligned=aligned)
        if (pattern.extra_args or self.extra) != "allow" and not actual.keys() <= bound.keys():
            issues += self._find_extras(bound.keys(), actual, schema, pattern, case.find_tool(step))
        if not issues:
            return FULL_AGREEMENT
        at_issue = {one.name for one in issues}
        matched = [one.weight for name, one in bound.items() if name in actual and name not in at_issue]
        return Agreement(fsum(matched), issues)

    def _list_issues(
        self,
        case: Case,
        pattern: CallPattern,
        step: Step,
        actual: Arguments,
        schema: Validator | None,
        *,
        aligned: bool,
    ) -> list[ArgumentIssue]:
        issues: list[ArgumentIssue] = []
        for name, expected in self._get_bound(case, pattern).items():
            if not expected.weight:
                continue
            if name not in actual:
                required = schema is not None and name in schema.required
                null = (pattern.args or {}).get(name, "") is None and _takes_null(case.find_tool(step), name)
                if required or not (expected.optional or null):
                    issues.append(ArgumentIssue(expected.weight, _MISSING, "missing_argument", name))
                continue
            match = expected.match(actual[name])
            if match == MATCHED:
                continue
            if self.texts is not None and (aligned or case.has_few_pairs):
                match = self._match_softly(case, pattern, step, expected, actual[name]) or match
            if match != MATCHED:
                issues.append(ArgumentIssue(expected.weight, match, "wrong_argument", name))
        return issues

    def _match_softly(
        self, case: Case, pattern: CallPattern, step: Step, expected: BoundArgument, actual: JsonValue
    ) -> Match | None:
        """Compare free texts by the critic `texts`; None where there are none, or they do not pass."""
        template = (pattern.args or {})[expected.name]
        if type(template) in _NO_TEXTS:
            return None
        key = id(self), id(pattern), step.call.name, step.agent, expected.name
        softer = case.once(key, lambda: self._soften(case, case.find_tool(step), expected, template))
        match = None if softer is None else softer.match(actual)
        return match if isinstance(match, Match) and match.passed else None

    def _soften(
        self, case: Case, tool: ToolDef | None, expected: BoundArgument, template: Template
    ) -> BoundArgument | None:
        """Return the argument with `texts` for its free texts; None if it has none and is compared by equality."""
        from_gold = case.expectation is not None and case.expectation.gold is not None
        softener = TextSoftener(cast("Critic", self.texts), tool, from_gold=from_gold)
        softer = softener.soften(template, (expected.name,))
        return None if softer is template and expected.critic is None else bind(expected.name, softer, critics={})

    def _get_bound(self, case: Case, pattern: CallPattern) -> dict[str, BoundArgument]:
        return case.once((id(self), id(pattern)), lambda: self._bind(pattern))

    def _bind(self, pattern: CallPattern) -> dict[str, BoundArgument]:
        args = dict(sorted((pattern.args or {}).items()))
        weights: dict[str, Weight] = {**self.weights, **pattern.weights}
        if not weights:
            return {name: bind(name, value, critics=self.critics) for name, value in args.items()}
        usual = _find_usual_weight(weights)
        numbers = {name: read_weight(weights.get(name, usual)) for name in args}
        return {name: bind(name, value, critics=self.critics, weight=numbers[name]) for name, value in args.items()}

    def _find_extras(
        self, bound: Set[str], actual: Arguments, schema: Validator | None, pattern: CallPattern, tool: ToolDef | None
    ) -> list[ArgumentIssue]:
        """List the arguments that nobody asked for.

        Without those that the schema requires, that equal its default, or that are null where the schema says that they may be.
        """
        required = schema.required if schema else frozenset[str]()
        defaults: Arguments = schema.defaults if schema and self.fill_defaults else {}
        usual = read_weight(_find_usual_weight({**self.weights, **pattern.weights}))
        return [
            ArgumentIssue(usual, _EXTRA, "extra_argument", name)
            for name in sorted(actual)
            if name not in bound
            and name not in required
            and not (name in defaults and equals(defaults[name], actual[name]))
            and not (actual[name] is None and _takes_null(tool, name))
        ]


_EXTRA = Match(0.0, False, "not expected")
_MISSING = Match(0.0, False, "missing")


def _find_usual_weight(weights: Mapping[str, Weight]) -> Weight:
    return "medium" if any(isinstance(w, str) for w in weights.values()) else 1.0


def _takes_null(tool: ToolDef | None, name: str) -> bool:
    """Whether the schema of an argument names null among its types: then null says no more than leaving it out."""
    listed = tool.parameters.get("properties") if tool is not None and isinstance(tool.parameters, Mapping) else None
    one = listed.get(name) if isinstance(listed, Mapping) else None
    if not isinstance(one, Mapping):
        return False
    options = [one, *[each for key in ("anyOf", "oneOf") for each in list_objects(one.get(key))]]
    types = [kind for each in options for kind in (each.get("type"), *list_elements(each.get("type")))]
    return "null" in types or one.get("nullable") is True


def find_fill_ins(schema: Validator, bound: Iterable[BoundArgument]) -> dict[str, JsonValue]:
    """Return the defaults that fill in for absent arguments: not for required ones, nor for those that may be absent."""
    unfilled = schema.required | {expected.name for expected in bound if expected.optional}
    return {name: value for name, value in schema.defaults.items() if name not in unfilled}
