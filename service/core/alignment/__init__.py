"""Which call made stands for which expected one."""
