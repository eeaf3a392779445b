"""Sparse linear trees: the solver, training level by level, beam search. Knows no texts and no label names."""
