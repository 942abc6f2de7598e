"""Spans of OpenTelemetry: an export's forms, what its conventions say where, and the dialogue that all spans tell."""
