"""Map a judge's raw value to the probability that a human would pass the item, where a fit allows it.

Maps are fitted elsewhere and applied here, without numpy. Every map is monotone and stays in [0, 1]. A fit is bound to
exactly the judge it was made for: another digest of its file, another model or another version of the prompt is a mismatch.
"""
