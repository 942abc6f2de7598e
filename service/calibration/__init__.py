"""Calibration: labelled sets, splits by group, maps from a judge's value to what humans say, and the report on it.

Nothing here asks a model or reads a file. matplotlib is needed for the plots of the HTML page alone.
"""
