"""JSON values: strict parsing, pointers, typed equality, texts, leaves and differences."""
