"""callgrade in other people's tests: a check that raises, cases from files, judged replies on a cassette, repeated runs."""
