"""The report of a calibration run as a document."""
