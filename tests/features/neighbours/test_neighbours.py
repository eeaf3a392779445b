"""Neighbours against loops in double precision: ties, blocks, threads, own rows, what is kept and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.progress import Progress
from xmtc.features.neighbours import Neighbours, NeighbourStore, Vectors, mean_word_vectors, search_once, word_means
from xmtc.features.neighbours import exact as neighbours_exact
from xmtc.features.neighbours import index as neighbours_index
from xmtc.features.neighbours import store as module
from xmtc.features.tokens import Tokens

Make = Callable[[NDArray], Vectors]
KINDS: dict[str, Make] = {
    "dense": lambda matrix: np.asarray(matrix, dtype=np.float32),
    "sparse": lambda matrix: sp.csr_matrix(np.asarray(matrix, dtype=np.float32)),
}


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Make:
    return KINDS[request.param]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 16)
    for name in ("_DENSE_QUERIES", "_SPARSE_QUERIES"):
        monkeypatch.setattr(neighbours_exact, name, 5)
    for name in ("_DENSE_DOCUMENTS", "_SPARSE_DOCUMENTS"):
        monkeypatch.setattr(neighbours_exact, name, 7)


def rows_of(store: NeighbourStore) -> list[list[float]]:
    """The stored vectors of length one, as Python numbers."""
    arrays = store.arrays()
    if "vectors" in arrays:
        return [[float(x) for x in row] for row in arrays["vectors"]]
    shape = (len(arrays["indptr"]) - 1, int(arrays["width"][0]))
    matrix = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape).toarray()
    return [[float(x) for x in row] for row in matrix]


def naive(pool: Vectors, queries: Vectors, k: int, own: NDArray | None) -> Neighbours:
    rows = np.full((queries.shape[0], k), -1, np.int32)
    similarities = np.zeros((queries.shape[0], k), np.float32)
    documents = rows_of(NeighbourStore.build(pool))
    for i, query in enumerate(rows_of(NeighbourStore.build(queries))):
        found = []
        for row, document in enumerate(documents):
            total = 0.0
            for a, b in zip(query, document, strict=True):
                total += a * b
            if np.float32(total) > 0 and (own is None or own[i] != row):
                found.append((-np.float32(total), row))
        for place, (negative, row) in enumerate(sorted(found)[:k]):
            rows[i, place], similarities[i, place] = row, -negative
    return Neighbours(rows, similarities)


def same(found: Neighbours, expected: Neighbours) -> bool:
    return (
        found.rows.dtype == np.int32
        and found.similarities.dtype == np.float32
        and np.array_equal(found.rows, expected.rows)
        and np.array_equal(found.similarities, expected.similarities)
    )


def draw(n: int, width: int, seed: int, levels: int = 4) -> NDArray[np.float32]:
    """Whole numbers, many of them 0: full of ties and zero rows."""
    random = np.random.default_rng(seed)
    return (random.integers(0, levels, (n, width)) * (random.random((n, width)) < 0.4)).astype(np.float32)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("k", [1, 3, 60])
@pytest.mark.parametrize("width", [3, 30])
def test_as_a_loop_finds_them(make: Make, width: int, k: int) -> None:
    pool, queries = make(draw(45, width, 0)), make(draw(23, width, 1))
    store = NeighbourStore.build(pool)
    assert same(store.search(queries, k), naive(pool, queries, k, None))
    own = np.arange(45)
    assert same(store.search(pool, k, own=own), naive(pool, pool, k, own))


@pytest.mark.usefixtures("small_blocks")
def test_negative_similarity_makes_no_neighbour() -> None:
    random = np.random.default_rng(0)
    pool, queries = (random.standard_normal((30, 5)).astype(np.float32) for _ in range(2))
    found = NeighbourStore.build(pool).search(queries, 30)
    assert same(found, naive(pool, queries, 30, None))
    assert (found.rows[:, -1] == -1).all()
    assert (found.similarities[found.rows >= 0] > 0).all()


@pytest.mark.usefixtures("small_blocks")
def test_near_ties_are_told_apart_in_double_precision(make: Make) -> None:
    random = np.random.default_rng(0)
    base = random.random(40)
    pool = make(base * (1 + 3e-4 * random.standard_normal((60, 40))))  # similarities differ by some 1e-7
    queries = make(base * (1 + 3e-4 * random.standard_normal((20, 40))))
    assert same(NeighbourStore.build(pool).search(queries, 5), naive(pool, queries, 5, None))


@pytest.mark.usefixtures("small_blocks")
def test_ever_nearer_documents(make: Make) -> None:
    angles = np.linspace(1.5, 0.1, 50)
    pool, query = make(np.stack([np.cos(angles), np.sin(angles)], axis=1)), make(np.array([[1.0, 0.0]]))
    found = NeighbourStore.build(pool).search(query, 4)
    assert found.rows.tolist() == [[49, 48, 47, 46]]
    assert found.similarities[0] == pytest.approx(np.cos(angles[:-5:-1]), rel=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_common_features_need_no_lists(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours_exact, "_RARE", share)
    random = np.random.default_rng(0)
    common = random.random(40) ** 3  # some features in nearly every document, most in few
    pool = sp.csr_matrix((random.random((50, 40)) * (random.random((50, 40)) < common)).astype(np.float32))
    assert same(NeighbourStore.build(pool).search(pool, 6, own=np.arange(50)), naive(pool, pool, 6, np.arange(50)))


def test_ties_go_to_the_lower_row_and_own_rows_stay_out(make: Make) -> None:
    distinct = draw(10, 30, 0) + np.eye(10, 30, dtype=np.float32)
    pool = make(np.tile(distinct, (3, 1)))  # document i is also i + 10 and i + 20
    found = NeighbourStore.build(pool).search(pool, 2, own=np.arange(30))
    for i in range(30):
        assert found.rows[i].tolist() == [row for row in (i % 10, i % 10 + 10, i % 10 + 20) if row != i]
    assert found.similarities == pytest.approx(np.ones((30, 2)), abs=1e-6)
    leaking = NeighbourStore.build(pool).search(pool, 2)
    assert leaking.rows[:, 0].tolist() == [i % 10 for i in range(30)]  # what `own` prevents


def test_own_may_be_no_row(make: Make) -> None:
    pool = make(np.eye(3) + 0.1)
    found = NeighbourStore.build(pool).search(pool, 1, own=np.array([-1, 1, -1]))
    assert found.rows.ravel().tolist() == [0, 0, 2]


def test_k_above_the_pool_and_zero_vectors(make: Make) -> None:
    pool = make(np.array([[1.0, 0], [0, 0], [1, 1]]))
    found = NeighbourStore.build(pool).search(make(np.array([[2.0, 0], [0, 0], [0, 3]])), 5)
    assert found.rows.tolist() == [[0, 2, -1, -1, -1], [-1] * 5, [2, -1, -1, -1, -1]]
    assert found.similarities[0] == pytest.approx([1, 0.5**0.5, 0, 0, 0])
    assert not found.similarities[1].any()
    alone = NeighbourStore.build(make(np.ones((1, 2)))).search(make(np.ones((1, 2))), 2, own=np.array([0]))
    assert alone.rows.tolist() == [[-1, -1]]
    assert NeighbourStore.build(make(np.empty((0, 2)))).search(pool, 2).rows.tolist() == [[-1, -1]] * 3
    assert NeighbourStore.build(pool).search(make(np.empty((0, 2))), 2).rows.shape == (0, 2)


@pytest.mark.usefixtures("small_blocks")
def test_threads_and_company_change_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    pool = make(random.random((60, 25)) * (random.random((60, 25)) < 0.5))
    store, own = NeighbourStore.build(pool), np.arange(60)
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("XMTC_THREADS", threads)
        found.append(store.search(pool, 4, own=own))
    assert same(found[1], found[0])
    assert same(found[2], found[0])
    for i in range(0, 60, 7):
        alone = store.search(pool[i : i + 1], 4, own=own[i : i + 1])
        assert same(alone, Neighbours(found[0].rows[i : i + 1], found[0].similarities[i : i + 1]))


def test_lengths_do_not_matter(make: Make) -> None:
    matrix = draw(20, 8, 0) + 1
    scales = np.float32(2.0) ** np.arange(-10, 10)[:, None]
    plain, scaled = (
        NeighbourStore.build(make(vectors)).search(make(matrix), 3) for vectors in (matrix, matrix * scales)
    )
    assert same(plain, scaled)
    lengths = np.linalg.norm(rows_of(NeighbourStore.build(make(matrix))), axis=1)
    assert lengths == pytest.approx(np.ones(20), rel=1e-6)


def test_unsorted_and_repeated_columns() -> None:
    odd = sp.csr_matrix((np.array([1, 2, 3], np.float32), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    store = NeighbourStore.build(odd)
    assert rows_of(store)[0] == pytest.approx([2 / 20**0.5, 0, 4 / 20**0.5])
    assert store.search(odd, 1).similarities[0, 0] == pytest.approx(1)
    assert odd.indices.tolist() == [2, 0, 2]  # as it was given


def test_stored_arrays_are_used_where_they_lie(make: Make, tmp_path: Path) -> None:
    pool = make(draw(30, 12, 0))
    store = NeighbourStore.build(pool)
    mapped = {}
    for name, array in store.arrays().items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=False)
        mapped[name] = np.asarray(np.load(tmp_path / f"{name}.npy", mmap_mode="r", allow_pickle=False))
    loaded = NeighbourStore.from_arrays(mapped)
    assert len(loaded) == 30
    again = loaded.arrays()
    assert all(np.shares_memory(again[name], mapped[name]) for name in mapped if name != "width")
    assert same(loaded.search(pool, 3), store.search(pool, 3))


def test_arrays_that_do_not_fit_are_refused() -> None:
    dense = NeighbourStore.build(KINDS["dense"](draw(5, 4, 0))).arrays()
    with pytest.raises(ModelError, match="2-dimensional array of float32"):
        NeighbourStore.from_arrays({"vectors": dense["vectors"].ravel()})
    good = NeighbourStore.build(KINDS["sparse"](draw(5, 4, 0) + 1)).arrays()
    bad = [
        {"data": good["data"][:-1]},
        {"indices": good["indices"] + 4},
        {"indices": good["indices"] - 4},
        {"indptr": good["indptr"][::-1]},
        {"indptr": good["indptr"][:-1]},
        {"width": np.array([1])},
    ]
    for change in bad:
        with pytest.raises(ModelError, match="train the model again"):
            NeighbourStore.from_arrays({**good, **change})


def test_bad_input_is_told_in_a_line(make: Make) -> None:
    matrix = np.ones((5, 3))
    store = NeighbourStore.build(make(matrix))
    for value in (np.nan, np.inf):
        broken = matrix.copy()
        broken[3, 1] = value
        with pytest.raises(DataError, match="vector of document 3 holds NaN"):
            NeighbourStore.build(make(broken))
        with pytest.raises(DataError, match="vector of document 3 holds NaN"):
            store.search(make(broken), 1)
    with pytest.raises(DataError, match=r"3 wide; got .*, 4 wide"):
        store.search(make(np.ones((1, 4))), 1)
    other = KINDS["sparse" if make is KINDS["dense"] else "dense"]
    with pytest.raises(DataError, match="queries must be like the pool's vectors"):
        store.search(other(matrix), 1)
    with pytest.raises(ConfigError, match="at least 1; got 0"):
        store.search(make(matrix), 0)
    for own in ([0], [0, 1, 2, 3, 5], [0, 1, 2, 3, -2]):
        with pytest.raises(DataError, match="own must give a row"):
            store.search(make(matrix), 1, own=np.array(own))


class Killed(Progress):
    """Ends the work after some steps."""

    def __init__(self, after: int) -> None:
        self.left = after

    def step(self, done: int, total: int) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


class Counting(Progress):
    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []

    def step(self, done: int, total: int) -> None:
        self.steps.append((done, total))


@pytest.mark.usefixtures("small_blocks")
def test_a_killed_search_goes_on_where_it_was(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path))
    pool, own = make(draw(50, 9, 0)), np.arange(50)  # 4 blocks of 16
    store = NeighbourStore.build(pool)
    with pytest.raises(KeyboardInterrupt):
        search_once(store, pool, 3, own=own, progress=Killed(after=2))
    kept = {path.name: path.stat().st_ino for path in (tmp_path / "neighbours").iterdir()}
    assert len(kept) == 2
    heard = Counting()
    found = search_once(store, pool, 3, own=own, progress=heard)
    assert heard.steps == [(16, 50), (32, 50), (48, 50), (50, 50)]
    assert same(found, store.search(pool, 3, own=own))
    entries = {path.name: path.stat().st_ino for path in (tmp_path / "neighbours").iterdir()}
    assert len(entries) == 4
    assert kept.items() <= entries.items()  # not written again
    assert same(search_once(NeighbourStore.build(pool), pool, 3, own=own), found)
    assert len(list((tmp_path / "neighbours").iterdir())) == 4


def test_whatever_matters_is_in_the_key(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path))
    matrix = draw(12, 9, 0) + np.eye(12, 9, dtype=np.float32)
    other = matrix[::-1].copy()
    asked: list[tuple[NDArray, NDArray, int, NDArray | None]] = [
        (matrix, matrix, 3, None),
        (matrix, matrix, 2, None),
        (matrix, matrix, 3, np.arange(12)),
        (matrix, matrix, 3, np.arange(12)[::-1].copy()),
        (matrix, other, 3, None),
        (other, matrix, 3, None),
    ]
    for pool, queries, k, own in asked:
        store = NeighbourStore.build(make(pool))
        assert same(search_once(store, make(queries), k, own=own), store.search(make(queries), k, own=own))
    assert len(list((tmp_path / "neighbours").iterdir())) == len(asked)


def test_neighbours_below_a_cap_against_a_loop() -> None:
    random = np.random.default_rng(0)
    similarities = -np.sort(-random.random((40, 9)).astype(np.float32), axis=1)
    missing = np.arange(9) >= random.integers(0, 10, (40, 1))
    similarities[missing] = 0
    similarities[0, :3] = 0.5  # at the cap, which is allowed
    rows = np.where(missing, -1, random.permutation(360).reshape(40, 9)).astype(np.int32)
    for k in (1, 4, 20):
        found = Neighbours(rows, similarities).below(0.5, k)
        for i in range(40):
            kept = [(r, s) for r, s in zip(rows[i], similarities[i], strict=True) if r >= 0 and s <= 0.5][:k]
            kept += [(-1, 0.0)] * (min(k, 9) - len(kept))
            assert list(zip(found.rows[i], found.similarities[i], strict=True)) == kept


def test_mean_word_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_means, "_BLOCK", 3)
    random = np.random.default_rng(0)
    vectors = random.standard_normal((9, 4)).astype(np.float32)
    documents = [[1, 2, 2], [], [0, 0], [5], [0, 8, 0, 3], *([int(x)] * 3 for x in random.integers(1, 9, 5))]
    tokens = Tokens(
        np.array([word for words in documents for word in words], np.int32),
        np.cumsum([0, *map(len, documents)]).astype(np.int64),
    )
    found = mean_word_vectors(tokens, vectors)
    assert found.dtype == np.float32
    for row, words in zip(found, documents, strict=True):
        read = [vectors[word].astype(float) for word in words if word != 0]
        assert row == pytest.approx(sum(read) / len(read) if read else np.zeros(4), rel=1e-6)
    with pytest.raises(DataError, match="below 8"):
        mean_word_vectors(tokens, vectors[:8])
    assert mean_word_vectors(Tokens(np.empty(0, np.int32), np.zeros(1, np.int64)), vectors).shape == (0, 4)


class Listening(Progress):
    def __init__(self) -> None:
        self.facts: list[str] = []

    def say(self, fact: str) -> None:
        self.facts.append(fact)


def test_without_usearch_the_search_is_exact_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch", None)
    pool, heard = KINDS["dense"](draw(20, 6, 0)), Listening()
    store = NeighbourStore.build(pool, "always", heard)
    assert len(heard.facts) == 1
    assert "usearch is not installed" in heard.facts[0]
    assert same(store.search(pool, 3), naive(pool, pool, 3, None))
    monkeypatch.setattr(module, "APPROXIMATE_FROM", 10)
    NeighbourStore.build(pool, "auto", heard)
    assert len(heard.facts) == 2
    NeighbourStore.build(pool, "never", heard)
    NeighbourStore.build(KINDS["sparse"](pool), "auto", heard)
    assert len(heard.facts) == 2
    NeighbourStore.build(KINDS["sparse"](pool), "always", heard)
    assert "always searched exactly" in heard.facts[2]


def test_auto_is_exact_for_few_documents() -> None:
    assert not NeighbourStore.build(KINDS["dense"](draw(20, 6, 0)), "auto").approximate


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NDArray[np.float32]:
    """Documents around some centres, and one without words; indexes of 500 documents, kept in a folder of the test."""
    pytest.importorskip("usearch", reason="the approximate search needs usearch")
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(neighbours_index, "SHARD", 500)
    random = np.random.default_rng(0)
    vectors = random.standard_normal((30, 16))[random.integers(0, 30, 1200)] + 0.5 * random.standard_normal((1200, 16))
    vectors[7] = 0
    return vectors.astype(np.float32)


def test_an_index_finds_nearly_all(clouds: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch) -> None:
    own = np.arange(1200)
    exact = NeighbourStore.build(clouds, "never").search(clouds, 5, own=own)
    monkeypatch.setenv("XMTC_THREADS", "1")
    store = NeighbourStore.build(clouds, "always")
    assert store.approximate
    found = store.search(clouds, 5, own=own)
    hits = [len(set(a) & set(b)) for a, b in zip(found.rows.tolist(), exact.rows.tolist(), strict=True)]
    assert sum(hits) / (5 * 1200) > 0.95
    assert not (found.rows == own[:, None]).any()
    assert (found.rows[7] == -1).all()
    assert not (found.rows == 7).any()
    assert (np.diff(found.similarities) <= 0).all()
    shared = (found.rows == exact.rows).all(axis=1)
    assert np.array_equal(found.similarities[shared], exact.similarities[shared])
    assert same(store.search(clouds[:1], 5, own=own[:1]), Neighbours(found.rows[:1], found.similarities[:1]))
    monkeypatch.setenv("XMTC_THREADS", "2")
    built = neighbours_index.build_shards(store.arrays()["vectors"])
    stored = [store.arrays()[f"index_{i}"] for i in range(3)]
    assert all(np.array_equal(a, b) for a, b in zip(built, stored, strict=True))
    assert same(search_once(store, clouds, 5, own=own), found)


def test_an_index_is_stored(clouds: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch) -> None:
    store = NeighbourStore.build(clouds, "always")
    arrays = store.arrays()
    assert sorted(arrays) == ["index_0", "index_1", "index_2", "vectors"]
    loaded = NeighbourStore.from_arrays(arrays)
    assert loaded.approximate
    assert same(loaded.search(clouds[:50], 5), store.search(clouds[:50], 5))
    with pytest.raises(ModelError, match="array 'index_1' is missing"):
        NeighbourStore.from_arrays({name: arrays[name] for name in ("vectors", "index_0", "index_2")})
    older = arrays["index_1"].copy()
    older[HEAD + 9 : HEAD + 11].view("<u2")[:] = 1  # a version whose files usearch does not read
    with pytest.raises(ModelError, match="the neighbour index cannot be read"):
        NeighbourStore.from_arrays({**arrays, "index_1": older})
    with pytest.raises(ModelError, match="'index_0' must hold rows from 0 to 399"):
        NeighbourStore.from_arrays({"vectors": arrays["vectors"][:400], "index_0": arrays["index_2"]})
    monkeypatch.setitem(sys.modules, "usearch", None)
    without = NeighbourStore.from_arrays(arrays)
    assert not without.approximate
    heard = Listening()
    exact = without.search(clouds[:50], 5, progress=heard)
    assert len(heard.facts) == 1
    assert "usearch is not installed" in heard.facts[0]
    assert same(exact, NeighbourStore.build(clouds, "never").search(clouds[:50], 5))


# what becomes of a graph of 500 documents, 16 wide, and words of the line that refuses it: usearch reads outside its
# memory by most of these. Places: 8 + 500 · 32 vectors, 64 and 40 bytes of heads, 2 · 500 of levels, then documents
HEAD = 8 + 500 * 32
LEVELS = HEAD + 64 + 40
NODES = LEVELS + 2 * 500
HOSTILE: dict[str, tuple[int, str, int, str]] = {
    "more vectors": (0, "<u4", 501, "is not an index of usearch 2"),
    "billions of vectors": (0, "<u4", 2**32 - 1, "does not hold vectors of width 16"),
    "wider vectors": (4, "<u4", 64, "does not hold vectors of width 16"),
    "infinite number": (8 + 32, "<u2", 0x7C00, "holds NaN, infinity"),
    "another magic": (HEAD, "u1", 0, "is not an index of usearch 2"),
    "another version": (HEAD + 7, "<u2", 3, "is not an index of usearch 2"),
    "another metric": (HEAD + 13, "u1", ord("c"), "another kind of vectors"),
    "wider numbers": (HEAD + 14, "u1", 11, "another kind of vectors"),
    "deleted documents": (HEAD + 25, "<u8", 3, "contradicts itself"),
    "another width": (HEAD + 33, "<u8", 1600, "contradicts itself"),
    "several per key": (HEAD + 41, "u1", 1, "another kind of vectors"),
    "more documents": (HEAD + 64, "<u8", 2**40, "contradicts itself"),
    "more edges above": (HEAD + 72, "<u8", 17, "must have 32 edges"),
    "more edges": (HEAD + 80, "<u8", 2**31, "must have 32 edges"),
    "higher": (HEAD + 88, "<u8", 9, "an entry that is not on its highest level"),
    "entry elsewhere": (HEAD + 96, "<u8", 500, "an entry that is not on its highest level"),
    "level below": (LEVELS, "<i2", -1, "below the lowest level"),
    "level above": (LEVELS, "<i2", 1, "is longer or shorter"),
    "huge level": (LEVELS, "<i2", 32767, "is longer or shorter"),
    "row of another pool": (NODES, "<u8", 2**63, "must hold rows from 500 to 999"),
    "row twice": (NODES, "<u8", 501, "must hold rows from 500 to 999"),
    "two levels": (NODES + 8, "<i2", 3, "gives a document two levels"),
    "more edges than there is room": (NODES + 10, "<u4", 33, "has edges to documents that it does not hold"),
    "an edge to nowhere": (NODES + 14, "<u4", 500, "has edges to documents that it does not hold"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_index_is_refused(kind: str, clouds: NDArray[np.float32]) -> None:
    at, dtype, value, words = HOSTILE[kind]
    arrays = NeighbourStore.build(clouds, "always").arrays()
    harmed = arrays["index_1"].copy()
    assert (harmed[:8].view("<u4") == [500, 32]).all()
    assert harmed[LEVELS : LEVELS + 2].view("<i2") == 0  # the first document is on the lowest level alone
    harmed[at : at + np.dtype(dtype).itemsize].view(dtype)[:] = value
    with pytest.raises(ModelError, match=f"'index_1' .*{words}"):
        NeighbourStore.from_arrays({**arrays, "index_1": harmed})


def test_a_hostile_index_above_the_lowest_level_is_refused(clouds: NDArray[np.float32]) -> None:
    arrays = NeighbourStore.build(clouds, "always").arrays()
    index = arrays["index_1"]
    levels = index[LEVELS:NODES].view("<i2")
    above = int(np.flatnonzero(levels)[0])
    edges = NODES + 142 * (above + 1) + 68 * int(levels[:above].sum())  # of level 1
    assert 0 < index[edges : edges + 4].view("<u4") <= 16
    low = int(np.flatnonzero(levels == 0)[0])
    for at, value in ((edges, 17), (edges + 4, 500), (edges + 4, low)):
        harmed = index.copy()
        harmed[at : at + 4].view("<u4")[:] = value
        with pytest.raises(ModelError, match="documents that are not on their level"):
            NeighbourStore.from_arrays({**arrays, "index_1": harmed})
    for part in (index[:100], index[:-2], np.concatenate([index, index[:2]]), index[:0]):
        with pytest.raises(ModelError, match=r"too short|longer or shorter"):
            NeighbourStore.from_arrays({**arrays, "index_1": part})


def test_neighbour_of_an_all_zero_pool_block(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours_exact, "_DENSE_DOCUMENTS", 4)
    monkeypatch.setattr(neighbours_exact, "_SPARSE_DOCUMENTS", 4)
    pool = make(np.concatenate([np.zeros((8, 2)), np.ones((1, 2))]))
    assert NeighbourStore.build(pool).search(pool[8:], 2).rows.tolist() == [[8, -1]]
