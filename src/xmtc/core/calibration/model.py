"""A model with its calibration: ranks like the model and adds a probability to each label.

Input: a model and a calibration, or the folder that holds both. Output: a model whose rankings have probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xmtc.core.calibration.calibration import DEPTH, Calibration
from xmtc.core.calibration.thresholds import Threshold
from xmtc.core.errors import ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet
from xmtc.core.model import DisplayedModel, Documents, Model, check_k
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details, FolderReader, Manifest, add_file, write_folder

_FILE = "calibration.json"
UNCALIBRATED = "this model is not calibrated, so its labels have no probability; run `xmtc calibrate MODEL DATA` first"


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedModel(DisplayedModel):
    """A trained model whose rankings have probabilities; see `xmtc.core.model.Model`."""

    model: Model
    calibration: Calibration

    @property
    def labels(self) -> LabelSet:
        """The labels it ranks."""
        return self.model.labels

    @property
    def manifest(self) -> Manifest[Details]:
        """How it was trained."""
        return self.model.manifest

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document, ordered by the model's scores, with probabilities."""
        return self.calibration.apply(self.model.rank(documents, k), self.labels)

    def display_line(self) -> str:
        """Return the calibration method and the model's own line."""
        return f"{self.calibration.method} calibration of {self.model!r}"

    def explain(self, text: str, label: str) -> Explanation:
        """Explain why a label fits a text or not, as the model does."""
        return self.model.explain(text, label)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder with its calibration, completely or not at all."""
        with write_folder(folder, overwrite=overwrite) as out:
            self.model.save(out.folder, overwrite=True)  # the folder exists and is empty
            add_file(out.folder, _FILE, self.calibration.to_json().encode())


def uncalibrated(model: Model) -> Model:
    """Return the model without its calibration."""
    return model.model if isinstance(model, CalibratedModel) else model


def calibration_of(model: Model) -> Calibration | None:
    """Return a model's calibration; None if it has none."""
    return model.calibration if isinstance(model, CalibratedModel) else None


def find_threshold(model: Model, target: str, k: int = DEPTH) -> Threshold:
    """Return the threshold that reaches a target on the calibration documents, with at most k labels per document.

    target: "precision=0.9" (of all returned labels), "recall=0.8" (of all true labels) or "f1" (the best possible).
    """
    check_k(k)
    calibration = calibration_of(model)
    if calibration is None:
        raise ModelError(UNCALIBRATED)
    return calibration.thresholds.find(target, k)


def add_calibration(folder: str | Path, calibration: Calibration) -> None:
    """Store a calibration in the folder of a saved model; replace an existing one."""
    add_file(folder, _FILE, calibration.to_json().encode())


def with_calibration(model: Model, reader: FolderReader) -> Model:
    """Return a loaded model with the calibration from its folder, if there is one."""
    text = reader.text(_FILE)
    if text is None:
        return model
    try:
        return CalibratedModel(model, Calibration.from_json(text))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:150]
        raise ModelError(
            f"{reader.folder / _FILE} is not a calibration ({reason}); calibrate the model again"
        ) from None
