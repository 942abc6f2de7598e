"""What people say of scored traces: what may be labelled, labels, what to label next, where people differ."""
