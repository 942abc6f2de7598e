"""`callgrade convert`: traces as they are read, in the form that people write by hand."""

from __future__ import annotations

import json

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.options import Files, FormatOption
from service.cli.rendering.console import say
from service.cli.rendering.refusals import RefusalTeller


@command(25)
def convert(files: Files, input_format: FormatOption = "auto") -> int:
    """Print traces as they are read, in callgrade's own form; what could not be read is told on standard error.

    The first thing to try when a score surprises. Each trace is one JSON document, of several each is one line.
    """
    import typer

    from service.cli.inputs import Refusal, read_inputs
    from service.errors import InputError
    from service.intake.own_form import write_record
    from service.request import read_request_trace

    inputs = read_inputs(files, input_format=input_format)
    refused, teller = 0, RefusalTeller()
    for asked in inputs:
        if isinstance(asked, Refusal):
            refused += 1
            teller.say(asked)
            continue
        try:
            trace = read_request_trace(asked.request)
        except InputError as error:
            refused += 1
            teller.say(asked.refuse(error))
            continue
        typer.echo(json.dumps(write_record(trace), ensure_ascii=False))
        for part in trace.unread:
            say(f"{asked.place}: {part.path}: {part.reason}")
    inputs.tell_guesses()
    return ExitCode.DATA if refused else ExitCode.PASSED
