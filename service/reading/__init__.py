"""Bytes become requests: files and texts as people have them, one strict reader of JSON for all."""
