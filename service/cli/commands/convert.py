"""`callgrade convert`: print traces in callgrade's own format."""

from __future__ import annotations

import json

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.options import FilesArgument, FormatOption
from service.cli.rendering.console import say
from service.cli.rendering.refusals import RefusalPrinter


@command(25)
def convert(files: FilesArgument, input_format: FormatOption = "auto") -> int:
    """Print traces as callgrade reads them, in its own format. Parts that cannot be read are listed on standard error.

    Try this first when a score surprises you. Prints one JSON document per line.
    """
    import typer

    from service.cli.inputs import Refusal, read_inputs
    from service.errors import InputError
    from service.intake.own_form import write_record
    from service.request import read_request_trace

    inputs = read_inputs(files, input_format=input_format)
    refused, printer = 0, RefusalPrinter()
    for record in inputs:
        if isinstance(record, Refusal):
            refused += 1
            printer.print(record)
            continue
        try:
            trace = read_request_trace(record.request)
        except InputError as error:
            refused += 1
            printer.print(record.refuse(error))
            continue
        typer.echo(json.dumps(write_record(trace), ensure_ascii=False))
        for part in trace.unread:
            say(f"{record.place}: {part.path}: {part.reason}")
    inputs.print_guesses()
    return ExitCode.DATA if refused else ExitCode.PASSED
