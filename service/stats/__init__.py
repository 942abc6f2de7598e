"""Seeded statistics: the same numbers always give the same figure.

`intervals`: rates, means and paired differences (re-exported here; needs no numpy). `agreement`: two or more annotators.
`tallies`: scores in [0, 1] against labels. `resampling`: intervals of any statistic by cluster bootstrap. `corrected`: the
pass rate of many items from few labels.
"""

from service.stats.intervals import bootstrap, choose_difference, choose_interval, mcnemar, newcombe, pass_hat_k, wilson

__all__ = ["bootstrap", "choose_difference", "choose_interval", "mcnemar", "newcombe", "pass_hat_k", "wilson"]
