"""Run by test_limited.py: trains a linear model in a process whose own memory is limited, and says what it took.

python -m tests.methods.linear.limited DATA OUT LIMIT_MB|0
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

SETTINGS = {
    "tfidf": {"min_df": 1},
    "tree": {"trees": 1},
    "cluster": {"size": 64},
    "solver": {"passes": 1},
}


def main(data: str, out: str, limit: int) -> None:
    if limit:
        os.environ["XMTC_MEMORY"] = f"{limit}M"
        # what a process allocates for itself; files that it maps, as training in tasks does, are not counted
        resource.setrlimit(resource.RLIMIT_DATA, (limit << 20, limit << 20))
    from xmtc import api
    from xmtc.core.progress import Progress

    matrix: list[int] = []

    class Watched(Progress):
        def stage(self, name: str) -> None:
            found = Path(f"{out}.partial/matrix")
            if found.is_dir() and not matrix:
                matrix.append(sum(path.stat().st_size for path in found.glob("*.npy")))

    api.train(api.read_corpus(data), "linear", SETTINGS, out=out, seed=1, progress=Watched())
    print(json.dumps({"matrix_mb": matrix[0] >> 20 if matrix else None}))  # None: it was held in memory


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
