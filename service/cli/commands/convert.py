"""`callgrade convert` and `callgrade formats`: how traces are read, and which formats are known."""

from __future__ import annotations

import json

import typer

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.screen import print_refusal, print_table, say

commands = typer.Typer()


@commands.command("convert")
def convert(files: options.Files, input_format: options.InputFormat = "auto") -> int:
    """Print traces as callgrade reads them, in its own format. Parts that cannot be read are listed on standard error.

    Try this first when a score surprises you. Prints one JSON document per line.
    """
    from service.cli.inputs import Refusal, print_guesses, read_inputs
    from service.errors import InputError
    from service.intake.own_form import write_record
    from service.request import read_request_trace

    inputs, code = read_inputs(files, input_format=input_format), ExitCode.PASSED
    for record in inputs:
        try:
            if isinstance(record, Refusal):
                raise record.error
            trace = read_request_trace(record.request)
        except InputError as error:
            print_refusal(record if isinstance(record, Refusal) else record.refuse(error))
            code = ExitCode.DATA
            continue
        typer.echo(json.dumps(write_record(trace), ensure_ascii=False))
        for part in trace.unread:
            say(f"{record.place}: {part.path}: {part.reason}")
    print_guesses(inputs.guessed, inputs.left_out)
    return code


@commands.command("formats")
def formats() -> int:
    """List the trace formats: what each is, and the fields by which a trace that names no format is recognized."""
    from service.intake.reading import list_formats

    rows = [(entry.name, entry.summary, entry.hint) for entry in list_formats()]
    print_table(("format", "what it is", "recognized by"), rows)
    return ExitCode.PASSED
