"""The forms that structure takes in a text, one file each, which defines `FORM`."""
