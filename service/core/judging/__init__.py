"""What a judge is asked, what it is shown, and what its reply is worth. No model is called here."""
