"""Rank documents batch by batch, so that input and output may have any size.

A `Request` contains the model and the options, and can be sent to another process. The `Tagger` that it opens reads one
source and writes one output at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from xmtc import api
from xmtc.app.cli.prediction_output import Form, Found, open_output
from xmtc.core.abilities import count_ranked
from xmtc.core.calibration import Threshold, calibration_of, find_threshold
from xmtc.core.errors import ConfigError
from xmtc.core.model import Documents, Model
from xmtc.core.steering import Steering

if TYPE_CHECKING:
    from xmtc.data import TableMapping


class Request(NamedTuple):
    """A prediction request; the fields are the options of `xmtc predict`."""

    model: str
    k: int
    threshold: float | None
    target: str | None
    min_score: float | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    json: bool
    wide: bool
    mapping: TableMapping | None

    def open(self) -> Tagger:
        """Load the model and check the options."""
        model = api.load(self.model)
        k = min(self.k, count_ranked(model))
        chosen = None if self.target is None else find_threshold(model, self.target, k)
        threshold = self.threshold if chosen is None else chosen.value
        steering = Steering.check(model, threshold, self.min_score, self.include, self.exclude)
        form = Form(model.labels, k, calibration_of(model) is not None, self.wide)
        return Tagger(self, model, form, steering, chosen)


class _Batch(NamedTuple):
    ids: list[str]
    titles: Sequence[str]  # display text of each document
    documents: Documents


@dataclass(frozen=True, eq=False)
class Tagger:
    """A loaded model with the options of a request."""

    request: Request
    model: Model
    form: Form
    steering: Steering
    chosen: Threshold | None  # chosen for a target

    def tag(self, source: list[str] | str, output: str | None, step: Callable[[int], None]) -> int:
        """Rank texts, or a file's documents, and write the results; return the number of documents.

        `step` is called with the number of documents so far.
        """
        done = 0
        warned = False
        with open_output(output, self.form, self.request.json) as write:
            for batch in self._batches(source):
                warned = warned or self._warn_of_strange(batch)
                write(Found(batch.ids, batch.titles, self.steering.rank(self.model, batch.documents, self.form.k)))
                done += len(batch.ids)
                step(done)
        return done

    def _batches(self, source: list[str] | str) -> Iterator[_Batch]:
        from xmtc.data import iter_documents, iter_features

        width = api.n_features(self.model)
        if width is not None and (isinstance(source, list) or source == "-"):
            raise ConfigError(
                "this model was trained on features, not texts; give --input FILE, an XML Repository file"
            )
        if isinstance(source, list):
            yield _Batch([str(i) for i in range(len(source))], source, source)
        elif width is None:
            for ids, texts in iter_documents(source, mapping=self.request.mapping):
                yield _Batch(ids, texts, texts)
        else:
            first = 0
            for features in iter_features(source, width):
                ids = [str(first + i) for i in range(features.shape[0])]
                yield _Batch(ids, [""] * len(ids), features)
                first += len(ids)

    def _warn_of_strange(self, batch: _Batch) -> bool:
        """Warn, once per source, if the model knows hardly any words of the texts; return whether it warned."""
        from xmtc.core.suspicions import LOOKED_AT, find_strange, warn

        if api.n_features(self.model) is not None:
            return False
        strange = find_strange(self.model, batch.titles[:LOOKED_AT])
        if strange:
            which = ", ".join(batch.ids[i] for i in strange[:3]) + (", …" if len(strange) > 3 else "")
            warn(
                f"the model knows hardly a word of {len(strange):,} texts (ids {which}); are they in another language?"
            )
        return bool(strange)
