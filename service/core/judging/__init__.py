"""What a judge is asked, what it is shown, and what its reply is worth. Nothing here calls a model."""
