"""What the tests of the neural methods share."""

from __future__ import annotations

import pytest

from tests.linear.conftest import problem, tree  # noqa: F401
from tests.neural.conftest import folder_of  # noqa: F401


@pytest.fixture(scope="module")
def one_thread(tmp_path_factory):
    """Tiny networks are fastest on one thread; tokens and vectors are kept in a cache of the module's own."""
    torch = pytest.importorskip("torch", reason="neural methods need torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XMTC_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
    torch.set_num_threads(threads)
