"""CrewAI: a CrewOutput, or one TaskOutput, with the `messages` of each task.

`raw` is the task's answer, usually the last message again. Of a task without messages only its answer is known.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, list_objects
from service.intake.build import Transcript
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_messages

_FAILED = "Error executing tool"
"""How what a failed tool returned begins."""


def _read(record: Cursor) -> Tools:
    tasks = record.list_nodes("tasks_output")
    for task in tasks or [record]:
        _read_task(task)
    if tasks:
        _add_answer(record.out, record.text("raw"))
    return None


def _read_task(task: Cursor) -> None:
    question = task.text("description")
    task.take_all("summary", "name", "expected_output", "pydantic", "json_dict")
    if task.peek("messages"):
        read_messages(task.out, task.items("messages", of="a message"), error_prefix=_FAILED)
        for failure in task.items("tool_failures", of="a failure"):
            failure.leave("a failure", by_id=False)
    else:
        task.out.say("user", question)
        task.out.note_unread("call", task.path, "a call in the messages of a task, which the output lacks,")
    _add_answer(task.out, task.text("raw"))


def _add_answer(out: Transcript, answer: str) -> None:
    """Add an answer, unless it ends what was said last."""
    if answer and not out.get_last_text().rstrip().endswith(answer.rstrip()):
        out.say("assistant", answer)


def _is_task(record: JsonObject) -> bool:
    return "raw" in record and "expected_output" in record and "description" in record


FORMATS = (
    Format(
        name="crewai",
        read=_read,
        recognise=lambda record: _is_task(record) or any(map(_is_task, list_objects(record.get("tasks_output")))),
        score=87,
        summary="A CrewOutput or TaskOutput of CrewAI, with the messages of its tasks.",
        hint="raw with description and expected_output, or tasks_output with such tasks",
    ),
)
