"""The rivals: what to install, what to call, with which settings; and the environments they live in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.framework import Found, Limits, PhaseError
from benchmarks.framework.process import one_line, run
from xmtc.catalogue import read_recipe
from xmtc.core.errors import ConfigError, nearest

_PATIENCE = 1800  # seconds that an installation may take


@dataclass(frozen=True)
class Rival:
    """One rival; `drivers/<module>.py` calls it."""

    name: str
    title: str
    requirements: tuple[str, ...]  # of one pip call
    check: str  # an import that succeeds when it is installed
    settings: dict[str, Any] = field(default_factory=dict)  # all else is the rival's own default
    notes: tuple[str, ...] = ()
    slow: bool = False  # runs only when it is named
    bare: tuple[str, ...] = ()  # installed after the requirements, without what they require themselves
    shared: str = ""  # the rival whose driver and environment it uses, if not its own
    C: tuple[float, ...] = ()  # those that benchmarks.peers.choose tries, where its C is chosen
    by_set: dict[str, dict[str, Any]] = field(default_factory=dict)  # set → its settings there, over the others
    beside: dict[str, str] = field(default_factory=dict)  # set → recipe of ours that reads and learns as it does

    @property
    def module(self) -> str:
        """Its driver's name."""
        return self.environment.replace("-", "_") if self.requirements else "xmtc_linear"

    @property
    def environment(self) -> str:
        """The folder of its environment."""
        return self.shared or self.name

    def settings_of(self, name: str) -> dict[str, Any]:
        """Its settings on a set."""
        learns = _as_in(self.beside[name]) if name in self.beside else {}
        return {**self.settings, **self.by_set.get(name, {}), **learns}

    def run_beside(self, name: str) -> str:
        """The name of the result of benchmarks.train that it stands beside."""
        return self.beside[name].replace("/", "-") + "-0"

    def title_on(self, name: str) -> str:
        """Its title, with what it reads on a set."""
        encoder = self.encoder_on(name)
        if encoder is None:
            return self.title
        settings = self.settings_of(name)
        read = f"{settings['layers'] or 'all'} layers, {settings['truncate_length']} tokens"
        return f"{self.title} on {encoder}, {read}"

    def encoder_on(self, name: str) -> str | None:
        """The encoder that it starts from on a set, the same as the recipe of ours; None if it has none."""
        if name not in self.beside:
            return None
        encoder: str = read_recipe(self.beside[name])[1]["encoder"]["name"]
        return encoder


def _as_in(recipe: str) -> dict[str, Any]:
    """The settings of PECOS XR-Transformer that make it read and learn as a recipe's matcher does."""
    settings = read_recipe(recipe)[1]
    return {
        "layers": settings["encoder"].get("layers"),
        "truncate_length": settings["encoder"]["max_length"],
        "num_train_epochs": settings["train"]["epochs"],
        "batch_size": settings["train"]["batch_size"],
        "learning_rate": settings["rate"]["encoder"],
    }


# another version may bring another TensorFlow, or torch with the libraries of CUDA
_ANNIF = ("annif[nn,omikuji]==1.4.3",)
_NLTK_DATA = ("llama-index-core==0.14.25",)  # holds NLTK's punkt_tab, which Annif would download
_ANNIF_CHECK = "import annif, keras, lmdb, omikuji; from importlib.metadata import version; version('llama-index-core')"
_ANNIF_SETTINGS = {"analyzer": "snowball(english)", "mllm_documents": 5000}
_ANNIF_NOTES = (
    "it reads the texts and the vocabulary: its analyzer (snowball) and its TF-IDF are part of its times",
    "its vocabulary has all concepts of the set; those without training documents are left out of its rankings",
    "a label without a name is named by the words in it: food-safety is food safety",
    "mllm learns from at most 5,000 documents: Annif advises 100 to 10,000",
    "its omikuji takes no seed: two runs differ",
)

_AROUND_1 = (0.25, 0.5, 1.0, 2.0)  # 1 is the default of most

RIVALS = {
    rival.name: rival
    for rival in (
        Rival(
            "omikuji",
            "omikuji (Parabel, 3 trees)",
            ("omikuji", "scikit-learn", "scipy", "numpy"),
            "import omikuji, scipy",
            {"beam_size": 10},
            C=_AROUND_1,
            by_set={"pydocs": {"C": 0.5}},
            notes=(
                "its Python API trains from a text file only: reading it is part of the training time",
                "its Python API has no batch call: two Python threads loop over the documents",
                "its Python API takes no seed: two runs differ",
            ),
        ),
        Rival(
            "pecos",
            "PECOS XR-Linear",
            ("torch==2.13.0", "libpecos"),  # in one call: libpecos alone would bring another torch
            "from pecos.xmc.xlinear.model import XLinearModel",
            {"nr_splits": 16, "negative_sampling_scheme": "tfn", "threshold": 0.1, "beam_size": 10},
            C=_AROUND_1,
            by_set={"pydocs": {"C": 0.25}},
        ),
        Rival(
            "pecos-xrt",
            "PECOS XR-Transformer",
            # it imports what later versions of transformers no longer have
            ("torch==2.13.0", "libpecos", "transformers==4.46.3"),
            "from pecos.xmc.xtransformer.model import XTransformer",
            {"beam_size": 10},
            (
                "it reads the texts too: tokenizing and its encoder are part of its times",
                "encoder, layers, tokens, epochs, batches and rate are those of the recipe for xbert",
                "its epochs are those of each level of its label tree",
                "its learning rate is that of its layers over clusters too",
                "it gets the beginnings of the texts, 64 characters for each token that it reads",
            ),
            slow=True,
            beside={
                "cooking": "xbert/cooking-cpu",
                "tate": "xbert/tate-v3-cpu",
                "eurlex57k": "xbert/eurlex57k-v3-cpu",
                "pydocs": "xbert/pydocs-cpu",
            },
        ),
        Rival(
            "napkinxc",
            "napkinXC PLT",
            ("napkinxc", "scikit-learn", "scipy", "numpy"),
            "from napkinxc.models import PLT; import scipy",
            C=(2.5, 5.0, 10.0, 20.0),  # 10 is its default
            by_set={"pydocs": {"C": 5.0}},
        ),
        Rival(
            "libmultilabel",
            "LibMultiLabel linear tree",
            ("libmultilabel", "scikit-learn"),
            "import libmultilabel.linear",
            {"options": "-s 1 -B 1 -e 0.1 -q", "K": 100, "dmax": 10, "beam_width": 10},
            C=_AROUND_1,
            by_set={"pydocs": {"C": 0.25}},
            notes=("it asks psutil for the number of cores: that answer is replaced by the number of threads",),
        ),
        Rival(
            "scikit-learn",
            "scikit-learn LinearSVC, one-vs-rest",
            ("scikit-learn", "scipy", "numpy"),
            "import sklearn, scipy",
            {"prune": 0.01, "most_seconds": 850},
            ("it makes the fits of OneVsRestClassifier, but keeps each label's weights sparse, to fit memory",),
        ),
        Rival(
            "annif",
            "Annif, mean of TF-IDF, Omikuji and MLLM",
            _ANNIF,
            _ANNIF_CHECK,
            {**_ANNIF_SETTINGS, "ensemble": "ensemble"},
            (*_ANNIF_NOTES, "its weights are equal, so that no documents are held out to learn them"),
            slow=True,
            bare=_NLTK_DATA,
        ),
        Rival(
            "annif-nn",
            "Annif, neural ensemble of TF-IDF, Omikuji and MLLM",
            _ANNIF,
            _ANNIF_CHECK,
            {**_ANNIF_SETTINGS, "ensemble": "nn_ensemble", "held_out": 0.1, "most_held_out": 4000},
            (
                *_ANNIF_NOTES,
                "its ensemble learns from a tenth of train, at most 4,000 documents (Annif advises 1,000 to 10,000), "
                "which the others do not see",
            ),
            slow=True,
            bare=_NLTK_DATA,
            shared="annif",
        ),
    )
}

# xmtc itself, on the same matrices and in processes of its own like the others
OURS = {
    rival.name: rival
    for rival in (
        Rival(
            "xmtc-fast",
            "xmtc linear/fast (1 tree)",
            (),
            "",
            {"recipe": "linear/fast"},
            C=_AROUND_1,
            # the rivals' beam; texts of some twenty words want fewer words a label, and fewer passes
            by_set={
                "pydocs": {
                    "C": 0.5,
                    "config": {"search": {"beam": 10}, "cluster": {"top": 100}, "solver": {"passes": 3}},
                }
            },
        ),
        Rival("xmtc-one-tree", "xmtc linear/one-tree", (), "", {"recipe": "linear/one-tree"}),
        Rival("xmtc-default", "xmtc linear (3 trees)", (), "", {"recipe": None}),
    )
}


def choose(only: str | None, known: Mapping[str, Rival]) -> list[Rival]:
    """Return the rivals of a comma-separated list; by default all but the slow ones."""
    names = only.split(",") if only else [name for name, rival in known.items() if not rival.slow]
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f" Known: {', '.join(known)}."
            raise ConfigError(f"unknown rival {name!r}.{hint}")
    return [known[name] for name in names]


def run_driver(python: Path, rival: Rival, phase: str, job: Mapping[str, Any], limits: Limits) -> Found:
    """Run a phase of the rival's driver in its environment."""
    return run(python, f"benchmarks.peers.drivers.{rival.module}", phase, job, limits)


def ready(rival: Rival, work: Path) -> Path:
    """Return the Python of the rival's environment in <work>/<environment>, which is made first if it does not work;
    what needs no environment of its own runs in this one."""
    if not rival.requirements:
        return Path(sys.executable)
    home = work / rival.environment
    python = home / "bin" / "python"
    if not python.exists() or not _works(python, rival):
        _call([sys.executable, "-m", "venv", str(home)])
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _call([*install, *rival.requirements])
        if rival.bare:
            _call([*install, "--no-deps", *rival.bare])
        _call([str(python), "-c", rival.check])
    return python


def _works(python: Path, rival: Rival) -> bool:
    return subprocess.run([str(python), "-c", rival.check], capture_output=True, check=False).returncode == 0


def _call(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise PhaseError(f"not finished after {_PATIENCE} s") from None
    if done.returncode:
        raise PhaseError(one_line(done.stderr) or f"ended with code {done.returncode}")
