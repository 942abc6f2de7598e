"""A scored trace as a person reads it: plain frozen values for templates, made without a clock, a file or a request."""
