"""What can be proved of a trace without a model: quantities in text, where arguments come from, what an answer claims."""
