"""Relate stated values to held ones: other ways to state one, results of arithmetic, and slips that explain a wrong one."""
