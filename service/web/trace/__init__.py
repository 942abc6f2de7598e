"""A scored trace as a person reads it: plain frozen values, made without a clock, a file or a request. Templates show them."""
