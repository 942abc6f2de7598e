"""JSON values: pointers, typed equality, patches and differences."""
