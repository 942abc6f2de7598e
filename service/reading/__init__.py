"""Turn bytes into requests: files and texts in many forms, and one strict JSON reader for all of them."""
