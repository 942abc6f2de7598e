"""Where does each value come from? Values in texts and results, their origins, and what may be proved of them."""
