"""Text in a trace that seems to speak to whoever judges it."""
