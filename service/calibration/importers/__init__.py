"""Read labelled sets in the formats they are published in."""
