"""Cases of a half: every answer as it is true, with one fact changed, and in other words that are as true."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from tests.benchmarks.slips.payloads import show
from tests.benchmarks.slips.slots import Scene, Slot, parse
from tests.benchmarks.slips.wording import Wordings

HALVES = {
    "dev": ("flights", "orders", "weather", "sports", "tickets"),
    "held": ("hotels", "banking", "calendar", "fitness", "property"),
    "fresh": ("clinic", "warehouse", "invoices", "library", "parcels", "energy", "rental", "servers", "courses",
     "payroll"),
    "open": ("charging", "theatre", "freight"),
    "sealed": ("telecom", "insurance", "recruiting", "garage", "auctions", "dairy"),
    "blind_a": ("cloudcosts", "builds", "deals", "museum", "recipes"),
    "blind_b": ("adstats", "pulls", "wallet", "elections", "inbox"),
    "blind_c": ("grades", "telemetry", "podcast", "chess", "grants"),
    "blind_d": ("blood", "satpass", "translation", "bees", "railworks"),
    "blind_e": ("pottery", "callsheet", "freezers", "turbines", "trees"),
    "blind_f": ("busdepot", "catering", "casefiles", "solar"),
    "blind_g": ("skilifts", "seedbank", "vets", "berths", "hackathon"),
    "blind_h": ("animalclinic", "quays", "gondolas", "customs"),
}  # fmt: skip
"""`blind_h` is read by nobody; the others are built on, `fresh` and the blind ones since they were measured unread."""
RENDERINGS = 3
"""Of an answer, where the domain says nothing else."""
MOST_OF_A_CLASS = 2
"""Mutants of one class that one rendering of an answer gives, where the domain says nothing else."""
_DATA = Path(__file__).parent / "data"
Picks = tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """Characters of the true text, and what stands there instead."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Case:
    """One text to be scored; `slip` is the class of a mutant and empty else."""

    id: str
    scene: Scene
    text: str
    true: str
    slip: str = ""
    changes: tuple[Change, ...] = ()

    @property
    def is_true_answer(self) -> bool:
        """Neither a mutant nor a paraphrase."""
        return self.text == self.true

    def mark_changes(self) -> str:
        """The text, with what was changed: `at ⟦12:05→12:20⟧`."""
        marked = [Change(c.start, c.end, f"⟦{self.true[c.start : c.end]}→{c.text}⟧") for c in self.changes]
        return apply(self.true, tuple(marked)) if marked else self.text

    def build_trace(self, text: str) -> dict[str, Any]:
        """The conversation: clock, question, calls, results, and this answer."""
        domain, scene = self.scene.domain, self.scene.data
        calls = scene.get("calls", [scene])
        messages = [
            {"role": "system", "content": f"{domain['system']} It is now {domain['now']}."},
            {"role": "user", "content": scene["ask"]},
            {"role": "assistant", "content": None, "tool_calls": [_build_call(n, c) for n, c in enumerate(calls, 1)]},
            *({"role": "tool", "tool_call_id": f"c{n}", "content": self._show(c)} for n, c in enumerate(calls, 1)),
            {"role": "assistant", "content": text},
        ]
        tools = [
            *(_build_tool(call["call"], call["args"]) for call in calls),
            *(_build_tool(name, {"id": ""}) for name in domain["actions"]),
        ]
        known = {tool["function"]["name"]: tool for tool in reversed(tools)}  # two calls may be of one tool
        return {"format": "openai", "id": self.id, "tools": list(known.values()), "messages": messages}

    def _show(self, call: dict[str, Any]) -> str:
        result = self.scene.data["result"]
        return show(result[call["member"]] if "member" in call else result, call.get("form", "json"))


@dataclass(frozen=True)
class Answer:
    """Sentences that may stand in any order, each of plain texts and slots."""

    sentences: tuple[tuple[str | Slot, ...], ...]
    between: str

    @property
    def slots(self) -> list[Slot]:
        """All slots, in order of the sentences."""
        return [piece for sentence in self.sentences for piece in sentence if isinstance(piece, Slot)]

    def render(self, picks: Picks, order: Picks) -> tuple[str, list[tuple[int, int]]]:
        """The text, and where in it each slot stands."""
        text, spans, starts = "", {}, [0]
        for sentence in self.sentences:
            starts.append(starts[-1] + sum(isinstance(piece, Slot) for piece in sentence))
        for place, which in enumerate(order):
            text += self.between if place else ""
            n = starts[which]
            for piece in self.sentences[which]:
                said = _fit(piece if isinstance(piece, str) else piece.right.at(picks[n]), text)
                if isinstance(piece, Slot):
                    spans[n] = (len(text), len(text) + len(said))
                    n += 1
                text += said
        return text, [spans[n] for n in range(len(spans))]


def build_cases(half: str) -> list[Case]:
    """All cases of a half, the same each time."""
    return [case for name in HALVES[half] for scene in load_scenes(name) for case in _build_scene(scene)]


def load_scenes(name: str) -> list[Scene]:
    """The scenes of a domain."""
    domain = yaml.safe_load((_DATA / f"{name}.yaml").read_text(encoding="utf-8"))
    return [Scene(domain, data, f"{name}/{n}") for n, data in enumerate(domain["scenes"])]


def _build_scene(scene: Scene) -> Iterator[Case]:
    for n, answer in enumerate(parse_answers(scene)):
        for rendering in range(scene.domain.get("renderings", RENDERINGS)):
            key = f"{scene.name}/{n}/{rendering}"
            yield from _build_renderings(answer, scene, key)


def parse_answers(scene: Scene) -> list[Answer]:
    """The answers of a scene, not yet in words; where there are many, a long one of several paragraphs too."""
    templates = scene.data["answers"]
    paragraphs = [each for each in templates if isinstance(each, str) and "|--" not in each]
    long = ["\n\n".join(paragraphs[:3])] if len(paragraphs) > 2 else []
    return [_parse_answer(template, scene) for template in (*templates, *long)]


def _parse_answer(template: str | list[str], scene: Scene) -> Answer:
    parts = [template] if isinstance(template, str) else template
    sentences = [tuple(parse(part, scene)) for part in parts]
    between = "\n" if all(part.startswith("- ") for part in parts) else " "
    if isinstance(template, str):
        sentences[0] = (*sentences[0], _phantom_slot(scene, "\n\n" if "\n" in template else " "))
    return Answer(tuple(sentences), between)


def _phantom_slot(scene: Scene, gap: str) -> Slot:
    """Nothing at the end: where it does not belong, an action nobody took; an offer is as good as nothing."""
    phantoms = tuple(("phantom", Wordings((gap + text,))) for text in scene.domain["phantoms"])
    return Slot(Wordings(("",), tuple(gap + text for text in scene.domain["offers"])), phantoms, "phantom")


def _build_renderings(answer: Answer, scene: Scene, key: str) -> Iterator[Case]:
    chance = random.Random(key)
    picks = tuple(chance.randrange(len(slot.right.exact)) for slot in answer.slots)
    order = tuple(range(len(answer.sentences)))
    true, spans = answer.render(picks, order)
    yield Case(f"{key}/true", scene, true, true)
    most = scene.domain.get("most_of_a_class", MOST_OF_A_CLASS)
    mutants = list(_mutate(answer, picks, true, spans, most, chance))
    for n, (slip, changes, text) in enumerate(mutants):
        yield Case(f"{key}/{slip}/{n}", scene, text, true, slip, changes)
    for n, text in enumerate(_paraphrase(answer, picks, chance, len(mutants))):
        yield Case(f"{key}/paraphrase/{n}", scene, text, true)


def _mutate(
    answer: Answer, picks: Picks, true: str, spans: list[tuple[int, int]], most: int, chance: random.Random
) -> Iterator[tuple[str, tuple[Change, ...], str]]:
    by_class: dict[str, list[tuple[Change, ...]]] = {}
    for slot, pick, (start, end) in zip(answer.slots, picks, spans, strict=True):
        for slip, wording in slot.wrong:
            if slip != "ampm" or true[start:end].rstrip(".")[-1] in "mM":
                change = Change(start, end, _fit(wording.at(min(pick, len(wording.exact) - 1)), true[:start]))
                by_class.setdefault(slip, []).append((change,))
    by_class["swapped"] = list(_swap(answer, picks, true, spans))
    for slip, options in by_class.items():
        chance.shuffle(options)
        texts = {apply(true, changes): changes for changes in options}
        for text in [text for text in texts if text != true][: 1 if slip == "phantom" else most]:
            yield slip, texts[text], text


def _swap(answer: Answer, picks: Picks, true: str, spans: list[tuple[int, int]]) -> Iterator[tuple[Change, ...]]:
    for one, two in combinations(range(len(picks)), 2):
        a, b = answer.slots[one], answer.slots[two]
        if a.entity and b.entity and a.entity[1] == b.entity[1] and a.right.exact[0] != b.right.exact[0]:
            said = (
                b.right.at(min(picks[one], len(b.right.exact) - 1)),
                a.right.at(min(picks[two], len(a.right.exact) - 1)),
            )
            yield tuple(
                Change(*spans[n], _fit(text, true[: spans[n][0]])) for n, text in zip((one, two), said, strict=True)
            )


def apply(text: str, changes: tuple[Change, ...]) -> str:
    """The text with its changes made."""
    for change in sorted(changes, key=lambda change: -change.start):
        text = text[: change.start] + change.text + text[change.end :]
    return text


def _paraphrase(answer: Answer, picks: Picks, chance: random.Random, number: int) -> Iterator[str]:
    """Texts that differ in the wording of one slot, of some or of all, or in the order of sentences."""
    order = list(range(len(answer.sentences)))
    seen = {answer.render(picks, tuple(order))[0]}
    counts = [len(slot.right.exact) + len(slot.right.loose) * (not _is_table(answer)) for slot in answer.slots]
    open_slots = [n for n, count in enumerate(counts) if count > 1]
    for attempt in range(number * 6):
        others = list(picks)
        for n in chance.sample(open_slots, min(len(open_slots), (1, 2, len(counts))[attempt % 3])):
            others[n] = chance.randrange(counts[n])
        if attempt % 2:
            chance.shuffle(order)
        text = answer.render(tuple(others), tuple(order))[0]
        if text not in seen:
            seen.add(text)
            yield text
        if len(seen) > number:
            break


def _is_table(answer: Answer) -> bool:
    return any("|--" in piece for piece in answer.sentences[0] if isinstance(piece, str))


def _fit(said: str, before: str) -> str:
    """A phrase behind a text: with a capital where a sentence begins, without a second full stop or weekday."""
    if before.endswith(".m.") and said.startswith("."):
        return said[1:]
    if re.search(r"[A-Z][a-z]+, $", before[-12:]) and re.match(r"[A-Z][a-z]+day, |[A-Z][a-z][a-z], ", said):
        return said.partition(", ")[2]
    starts = not before or (
        before.endswith((". ", "! ", "? ", "\n\n")) and not before.endswith((".m. ", "i.e. ", "approx. ", "min. "))
    )
    return said[0].upper() + said[1:] if starts and said[:1].islower() else said


def _build_call(n: int, call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call["call"], "arguments": json.dumps(call["args"])}
    return {"id": f"c{n}", "type": "function", "function": function}


def _build_tool(name: str, args: dict[str, Any]) -> dict[str, Any]:
    types = {str: "string", int: "integer", float: "number", bool: "boolean"}
    fields = {key: {"type": types[type(value)]} for key, value in args.items()}
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    function = {"name": name, "description": name.replace("_", " ").capitalize() + ".", "parameters": schema}
    return {"type": "function", "function": function}
