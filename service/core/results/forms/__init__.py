"""The forms in which a text has structure, one file each; the file holds `FORM`."""
