"""Compare what a text says was done with what the calls did, judging by the verbs in tool names."""
