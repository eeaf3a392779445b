"""Sparse linear trees: the solver, training level by level, beam search. Independent of texts and label names."""
