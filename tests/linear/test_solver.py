from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from xmtc.linear.lanes import LANES
from xmtc.linear.solver import SolverConfig, solve_block

EXACT = SolverConfig(tolerance=1e-5, passes=5000, prune=0, precision="float32")


def biased(X, bias=1.0):
    return sp.csr_matrix(sp.hstack([X, np.full((X.shape[0], 1), bias)], format="csr", dtype=np.float32))


def solve(X, Y, config=EXACT, rows=None, positives_only=None, first=0, n_lanes=None, seed=0):
    """The weights as a dense (features × labels) array."""
    rows = np.arange(X.shape[0]) if rows is None else rows
    flags = np.zeros(len(rows), bool) if positives_only is None else positives_only
    n_lanes = min(LANES, Y.shape[1] - first) if n_lanes is None else n_lanes
    scratch = np.zeros(X.shape[1], np.int32)
    block = solve_block(
        (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data),
        rows.astype(np.int32),
        flags,
        (Y.indptr.astype(np.int64), Y.indices.astype(np.int32)),
        first,
        n_lanes,
        config,
        seed,
        scratch,
    )
    assert not scratch.any()
    assert (np.diff(block.features) > 0).all()
    W = np.zeros((X.shape[1], n_lanes), np.float32)
    W[np.repeat(block.features, np.diff(block.starts)), block.children] = block.weights
    return W


def liblinear(X, y, C=1.0):
    svm = LinearSVC(C=C, loss="squared_hinge", dual=True, fit_intercept=False, tol=1e-6, max_iter=100_000)
    return svm.fit(X, y).coef_.ravel()


@pytest.mark.parametrize("C", [0.3, 1.0, 8.0])
def test_equals_liblinear(problem, C):
    X, Y = biased(problem[0]), problem[1]
    W = solve(X, Y, EXACT.model_copy(update={"C": C}), first=10)
    assert W.shape[1] == 40
    for lane in range(40):
        if lane + 10 != 17:
            np.testing.assert_allclose(W[:, lane], liblinear(X, Y[:, lane + 10].toarray().ravel(), C), atol=2e-3)


def test_rare_labels_have_a_larger_C(problem):
    X, Y = biased(problem[0]), problem[1]
    W = solve(X, Y, EXACT.model_copy(update={"C": 2.0, "rare": 0.5}), n_lanes=8)
    counts = np.asarray(Y.sum(axis=0)).ravel()
    assert len(set(counts[:8])) > 3
    for lane in range(8):
        expected = liblinear(X, Y[:, lane].toarray().ravel(), 2 * (100 / counts[lane]) ** 0.5)
        np.testing.assert_allclose(W[:, lane], expected, atol=5e-3)


@pytest.mark.parametrize("n_lanes", [1, 16, 17, 33, 48, 49])
def test_the_width_of_a_block_changes_no_bit(problem, n_lanes):
    X, Y = biased(problem[0]), problem[1]
    rough = SolverConfig(passes=3, tolerance=1e-9, prune=0)
    together = solve(X, Y, rough)
    assert together.shape[1] == 50
    assert solve(X, Y, rough, n_lanes=n_lanes).tobytes() == np.ascontiguousarray(together[:, :n_lanes]).tobytes()


def test_offset_draws_the_bias(problem):
    """The minimum of ½‖w − w₀‖² + C Σ max(0, 1 − y w·x)² by a general optimiser, w₀ zero but for the bias's offset."""
    X, Y = biased(problem[0], 0.5), problem[1]
    W = solve(X, Y, EXACT.model_copy(update={"bias": 0.5, "offset": -1}), n_lanes=6)
    centre = np.append(np.zeros(60), -2)
    for lane in range(6):
        y = 2 * Y[:, lane].toarray().ravel() - 1

        def objective(w, y=y):
            loss = np.maximum(0, 1 - y * (X @ w))
            return 0.5 * ((w - centre) ** 2).sum() + (loss**2).sum(), w - centre - 2 * X.T @ (y * loss)

        expected = minimize(objective, centre, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}).x
        np.testing.assert_allclose(W[:, lane], expected, atol=2e-3)


def test_some_rows_equal_liblinear_on_those_rows(problem):
    X, Y = biased(problem[0]), problem[1]
    rows = np.flatnonzero(np.random.default_rng(0).random(300) < 0.4)
    W = solve(X, Y, rows=rows, n_lanes=5)
    for lane in range(5):
        y = Y[rows, lane].toarray().ravel()
        assert 0 < y.sum() < len(y)
        np.testing.assert_allclose(W[:, lane], liblinear(X[rows], y), atol=2e-3)


def test_positives_only_rows_are_never_negatives(problem):
    X, Y = biased(problem[0]), problem[1]
    only = np.random.default_rng(1).random(300) < 0.5
    W = solve(X, Y, positives_only=only, n_lanes=4)
    for lane in range(4):
        y = Y[:, lane].toarray().ravel()
        kept = ~only | (y > 0)
        np.testing.assert_allclose(W[:, lane], liblinear(X[kept], y[kept]), atol=2e-3)


def test_nothing_to_tell_apart_gives_a_constant_score(problem):
    X = biased(problem[0], 2.0)
    Y = sp.csr_matrix(np.repeat([[1.0, 0.0]], 300, axis=0))
    W = solve(X, Y, SolverConfig(bias=2.0))
    assert (X @ W == [1, -1]).all()
    assert not solve(problem[0], Y, SolverConfig(bias=0)).any()


def test_no_rows_at_all(problem):
    X, Y = biased(problem[0]), problem[1]
    W = solve(X, Y, SolverConfig(), rows=np.empty(0), n_lanes=3)
    assert (W[-1] == -1).all()
    assert not W[:-1].any()


def test_pruning_keeps_weights_of_the_threshold_and_above(problem):
    X, Y = biased(problem[0]), problem[1]
    whole = solve(X, Y)
    threshold = float(np.abs(whole[5, 0]))
    pruned = solve(X, Y, EXACT.model_copy(update={"prune": threshold}))
    np.testing.assert_array_equal(pruned, np.where(np.abs(whole) >= np.float32(threshold), whole, 0))


def test_stops_at_the_tolerance_or_after_the_passes(problem):
    X, Y = biased(problem[0]), problem[1]

    def objective(config):
        W = solve(X, Y, config, n_lanes=8)
        margins = 1 - (2 * Y[:, :8].toarray() - 1) * (X @ W)
        return 0.5 * (W**2).sum() + (np.maximum(margins, 0) ** 2).sum()

    one, loose, exact = (
        objective(SolverConfig(prune=0, tolerance=t, passes=p)) for t, p in ((1e-5, 1), (0.5, 5000), (1e-5, 5000))
    )
    assert exact < loose < one
    assert loose == pytest.approx(exact, rel=0.02)


def test_seed_decides_the_order_of_rows(problem):
    X, Y = biased(problem[0]), problem[1]
    rough = SolverConfig(passes=2, prune=0)
    assert solve(X, Y, rough, seed=1).tobytes() == solve(X, Y, rough, seed=1).tobytes()
    assert solve(X, Y, rough, seed=1).tobytes() != solve(X, Y, rough, seed=2).tobytes()
