"""Print traces as callgrade reads them."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.inputs import print_guesses, read_inputs
from service.cli.screen import say
from service.intake.reading import find_second_guess
from service.intake.writing import write_atif, write_record
from service.reading.places import Layout
from service.reading.request import read_request_trace


def main(
    files: options.Files,
    input_format: options.InputFormat = "auto",
    *,
    to: Annotated[Literal["callgrade", "atif"], typer.Option(help="Format to write.")] = "callgrade",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also list what is ignored.")] = False,
    encoding: options.Encoding = None,
    columns: options.Columns = None,
    tools: options.Tools = None,
) -> int:
    """Print traces as callgrade reads them. Parts that cannot be read are listed on standard error.

    Try this first when a score surprises you. Prints one JSON document per line.
    """
    layout = Layout(input_format, encoding, options.read_columns(columns))
    inputs = read_inputs(files, layout=layout, tools=tools)
    for record, trace in inputs.work_on(read_request_trace):
        typer.echo(json.dumps(write_atif(trace) if to == "atif" else write_record(trace), ensure_ascii=False))
        for part in trace.unread:
            say(f"{record.place}: {part.path}: {part.reason}")
        if verbose and inputs.guessed[trace.format] and (second := find_second_guess(record.request.trace)):
            say(f"{record.place}: read as {trace.format}; the second best guess is {second}")
        for part in trace.ignored if verbose else ():
            say(f"{record.place}: ignored: {part.path}: {part.reason}")
    print_guesses(inputs.guessed, inputs.left_out)
    return ExitCode.DATA if inputs.refused else ExitCode.PASSED
