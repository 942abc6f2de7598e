"""What happens in every recorded run, and how a recording is written down.

Two questions with tools, one that is refused. The model calls `get_weather` twice at once (the second call fails), then
`write_note`; a user's message has an image. What a run had besides (hosted tools, custom tools) its script says.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SYSTEM = "You answer questions about the weather."
QUESTIONS = ("Is it raining in Oslo and in Bergen?", "Write that down; here is the page.", "Break into the station.")
RESULTS = ({"rain": True, "celsius": 4}, "no station in Bergen", "noted")
REFUSAL = "I can't help with that."
SCHEMAS = {
    "get_weather": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "write_note": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
ABOUT = {"get_weather": "The weather in a city.", "write_note": "Writes a note."}


@dataclass(frozen=True)
class Reply:
    """What the model says and calls: (id, name, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    refusal: bool = False


# The reply to the last message that has these words in it.
REPLIES = {
    "Break": Reply(REFUSAL, refusal=True),
    "noted": Reply("I wrote it down."),
    "Write that": Reply(calls=(("call_c", "write_note", {"text": "Oslo: rain"}),)),
    "station": Reply("It rains in Oslo, at 4 degrees. Bergen has no station."),
    "raining": Reply(
        "Let me look.", (("call_a", "get_weather", {"city": "Oslo"}), ("call_b", "get_weather", {"city": "Bergen"}))
    ),
}


def reply_to(message: Any) -> Reply:
    said = json.dumps(message)
    return next(reply for words, reply in REPLIES.items() if words in said)


def get_weather(city: str) -> dict[str, Any]:
    """The weather in a city."""
    if city != "Oslo":
        raise LookupError(RESULTS[1])
    return dict(RESULTS[0])


def write_note(text: str) -> str:
    """Writes a note."""
    return RESULTS[2]


@dataclass(frozen=True)
class Run:
    """What really happened; `texts` are those of users and of the model, in order, the empty ones left out."""

    calls: list[Any] = field(
        default_factory=lambda: [
            [name, args] for words in ("raining", "Write that") for _, name, args in REPLIES[words].calls
        ]
    )
    results: list[Any] = field(default_factory=lambda: list(RESULTS))
    errors: list[bool] = field(default_factory=lambda: [False, True, False])
    texts: list[Any] = field(
        default_factory=lambda: [
            ["user", QUESTIONS[0]],
            ["assistant", REPLIES["raining"].text],
            ["assistant", REPLIES["station"].text],
            ["user", QUESTIONS[1]],
            ["assistant", REPLIES["noted"].text],
            ["user", QUESTIONS[2]],
            ["assistant", REFUSAL],
        ]
    )
    answer: str | None = REFUSAL
    tools: list[str] | None = field(default_factory=lambda: list(SCHEMAS))


def first_reply(**changes: Any) -> Run:
    """The run up to the first reply, which makes two calls."""
    told = {"results": [None, None], "errors": [False, False], "texts": Run().texts[:2], "answer": None}
    return Run(**{"calls": Run().calls[:2], **told, **changes})


def keep(
    format_name: str,
    name: str,
    record: Any,
    *,
    run: Run,
    package: str = "",
    image: str = "",
    unread: Any = (),
    documents: str = "",
) -> None:
    """Write a fixture.

    `image`: where a user showed one; `unread`: kinds and pointers of what else nobody can read; `documents`: those from which
    the record, or its outer shape, was written where no package could be run for it.
    """
    head = {"package": f"{package} {version(package)}"} if package else {}
    head |= {"script": Path(sys.argv[0]).name} | ({"from documentation": documents} if documents else {})
    lost = [*map(list, unread), *([["other", image]] if image else [])]
    fixture = head | {"run": vars(run), "unread": lost, "record": json.loads(json.dumps(record, default=str))}
    text = json.dumps(fixture, indent=1, ensure_ascii=False)
    path = DATA / format_name / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(re.sub(r'File \\"[^"]*/', r'File \\"', text) + "\n", "utf-8")  # no paths of a machine
