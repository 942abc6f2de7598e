"""Read foreign traces into a Trace and foreign gold into an Expectation. Pure.

`reading.TraceInput` is the type of a trace field in a request model: pydantic validates the shape that `format` names, and
`read_trace` turns the validated record into a Trace. Trace formats stand in `formats`, a file for each family; formats of gold in
`gold`. Nothing is imported here, so that a command line that reads no trace is quick.
"""
