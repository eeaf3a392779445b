"""Renewal: from a given epoch on, search neighbours with the encoder as trained so far.

The encoder is trained further afterwards, so the search uses a copy. The copy is part of the network's state during
training: checkpoints contain it, and so do the weights of the best epoch, which may precede the renewal.
"""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from xmtc.methods.treader.inputs import TaughtInputs
from xmtc.methods.treader.network import TreaderConfig, TreaderNetwork
from xmtc.methods.treader.teacher import ByEncoder, Teacher
from xmtc.neural.embed import FrozenEncoder, mean_states
from xmtc.neural.encoder import Encoder
from xmtc.neural.prepare import Prepared


class Snapshot(nn.Module):
    """A copy of an encoder that is not trained; `taken` is true after the renewal."""

    taken: Tensor

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = deepcopy(encoder).requires_grad_(False)
        self.register_buffer("taken", torch.tensor(False))

    def take(self, encoder: Encoder) -> None:
        """Copy the encoder's weights."""
        self.encoder.load_state_dict(encoder.state_dict())
        self.taken.fill_(True)


class Renewal:
    """Renews the scopes of train and dev, in place, before epoch `after` (from 0); `first` is the teacher until then.

    Call it before every epoch, including when a run resumes, and call `finish` after the last.
    """

    def __init__(self, network: TreaderNetwork, ready: Prepared[TreaderConfig], first: Teacher, after: int) -> None:
        train, dev = ready.data.inputs, ready.dev[0]
        assert isinstance(train, TaughtInputs)  # a network with a teacher receives scopes
        assert isinstance(dev, TaughtInputs)
        self._train, self._dev, self._tokenizer, self._progress = train, dev, ready.tokenizer, ready.progress
        self._network, self._first, self._after = network, first, after
        self._snapshot = network.snapshot = Snapshot(network.encoder)
        self._renewed: Teacher | None = None

    def __call__(self, epoch: int) -> None:
        """Search again if it is time and this process has not done so."""
        if epoch < self._after or self._renewed is not None:
            return
        if not self._snapshot.taken:  # a resumed run loads it from the checkpoint
            self._snapshot.take(self._network.encoder)
        self._renewed = self._search()

    def finish(self) -> tuple[Teacher, bool]:
        """Return the teacher that belongs to the kept weights, and whether it is the renewed one."""
        self._network.snapshot = None
        if not self._snapshot.taken:
            return self._first, False
        return self._renewed or self._search(), True

    def _search(self) -> Teacher:
        """Return the teacher that uses the snapshot; from now on, train and dev have its scopes."""
        self._progress.stage("renewing neighbours")
        encoder, first = self._snapshot.encoder, self._first
        vectors, dev_vectors = (mean_states(encoder, part.tokens, self._progress) for part in (self._train, self._dev))
        compare = ByEncoder(FrozenEncoder(encoder, self._tokenizer))
        pool = (first.labels, first.ids, first.Y, vectors)
        teacher = Teacher.build(*pool, compare, first.neighbours, first.scope, self._progress)
        self._train.scopes.become(teacher.teach_pool(vectors, self._progress))
        self._dev.scopes.become(teacher.scopes(teacher.store.search(dev_vectors, first.neighbours.k)))
        return teacher
