"""callgrade in other people's tests: a check that raises, judged replies on a cassette, repeated runs."""
