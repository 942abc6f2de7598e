"""What should have happened, as users write it: the calls, values that hold matchers, the state; merged and compared."""
