"""Seeded statistics. The same numbers give the same figure, always.

`intervals`: rates, means and paired differences (imported here, without numpy). `agreement`: two or more annotators.
`tallies`: scores in [0, 1] against labels. `resampling`: intervals of anything, by whole groups. `corrected`: the rate of
many items from few labels.
"""

from service.stats.intervals import bootstrap, choose_difference, choose_interval, mcnemar, newcombe, pass_hat_k, wilson

__all__ = ["bootstrap", "choose_difference", "choose_interval", "mcnemar", "newcombe", "pass_hat_k", "wilson"]
