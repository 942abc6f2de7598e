"""The report of a calibration run, as data, Markdown and one HTML page."""
