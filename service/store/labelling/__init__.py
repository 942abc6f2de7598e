"""Human labels of scored traces: the items, the labels, what to label next, and where people disagree."""
