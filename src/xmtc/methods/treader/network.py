"""TReaderXML's settings and its network: words or an encoder, scope, dual reader, output layer.

docs/methods/treader.md maps the equations of Wang et al. (2022) to the code.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.core.search_space import Tunable
from xmtc.core.storage import Details
from xmtc.features.tfidf import TfidfConfig
from xmtc.features.words import WordsConfig
from xmtc.methods.treader.inputs import TaughtBatch
from xmtc.methods.treader.reading import DualReader, PoolConfig, ReaderConfig, ScopeReader
from xmtc.methods.treader.scopes import ScopeConfig
from xmtc.methods.treader.teacher import TeacherConfig
from xmtc.methods.treader.votes import Vote, VoteHead, Votes, VotingHead
from xmtc.methods.treader.word_encoder import WordEncoder
from xmtc.neural.batches import Batch
from xmtc.neural.dropout import Dropout
from xmtc.neural.embed import spread_scale
from xmtc.neural.encoder import Encoder
from xmtc.neural.network import Network
from xmtc.neural.optimizer import Schedule
from xmtc.neural.plateau import Plateau
from xmtc.neural.prepare import NeuralConfig
from xmtc.neural.trainer import TrainConfig


class TreaderWordsConfig(WordsConfig):
    """Settings of the words of texts and descriptions; length and vector width are the paper's on EURLex."""

    max_words: int = Field(500, ge=1, le=1_000_000, description="T, maximum words read per text")
    width: int = Field(300, ge=1, le=65_536, description="width of random vectors")


class HeadConfig(PoolConfig):
    """Settings of the layers between the states of all words and the labels."""

    dropout: float = Field(0.0, ge=0, lt=1, description="dropout before the output layer")
    initial_bias: float = Field(0.0, description="bias of the scores at the start; −6 suits rare labels")
    vote: Vote = Field(
        "none",
        description="raise the scores of the scope's labels by a learnt linear function of their weight there "
        "(weight), or of the logarithm of their neighbours' votes (log)",
    )

    @field_validator("vote", mode="before")
    @classmethod
    def _name_switch(cls, value: Any) -> Any:
        """Convert the setting of models and recipes from when the vote was a boolean."""
        return ("weight" if value else "none") if isinstance(value, bool) else value


class TreaderTrainConfig(TrainConfig):
    """Training settings: rates are constant or fall on a plateau, no clipping; the paper gives no more details."""

    epochs: int = Field(20, ge=1, description=TrainConfig.model_fields["epochs"].description)
    schedule: Schedule = Field("constant", description=TrainConfig.model_fields["schedule"].description)
    clip: float | None = Field(None, gt=0, description="maximum norm of the gradient")


class RateConfig(Settings):
    """Learning rates; the paper uses one for all."""

    words: Annotated[float, Tunable(1e-4, 2e-2, log=True)] = Field(
        1e-4, gt=0, description="learning rate of the word vectors (text = words)"
    )
    encoder: float = Field(1e-4, gt=0, description="learning rate of the encoder (text = encoder)")
    reader: Annotated[float, Tunable(1e-4, 5e-3, log=True)] = Field(
        1e-4, gt=0, description="learning rate of attention, bottleneck and, unless `output` is set, output layer"
    )
    output: float | None = Field(None, gt=0, description="learning rate of the output layer; None: the reader's")
    vote: float = Field(1e-3, gt=0, description="learning rate of the vote of the scope's labels")
    decay: float = Field(0.0, ge=0, description="weight decay of all weights except word vectors, biases and norms")


class TreaderConfig(NeuralConfig):
    """Settings of TReaderXML."""

    text: Literal["words", "encoder"] = Field(
        "words", description="how texts are read: as word vectors, or by an encoder's last layer"
    )
    words: TreaderWordsConfig = Field(default_factory=TreaderWordsConfig)
    neighbours: TeacherConfig = Field(default_factory=TeacherConfig)
    scope: ScopeConfig = Field(default_factory=ScopeConfig)
    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    reader: ReaderConfig = Field(default_factory=ReaderConfig)
    head: HeadConfig = Field(default_factory=HeadConfig)
    rate: RateConfig = Field(default_factory=RateConfig)
    plateau: Plateau | None = Field(
        None, description="how rates fall when dev does not improve; None: they do not fall"
    )
    train: TreaderTrainConfig = Field(default_factory=TreaderTrainConfig)

    @model_validator(mode="after")
    def _fits_together(self) -> TreaderConfig:
        if self.neighbours.renew is not None:
            if self.text != "encoder":
                raise ValueError(
                    "neighbours.renew searches by the fine-tuned encoder, but text = 'words' has none: set text to "
                    "'encoder', or leave neighbours.renew out"
                )
            if self.neighbours.renew >= self.train.epochs:
                raise ValueError(
                    f"neighbours.renew = {self.neighbours.renew}, but training ends after {self.train.epochs} epochs "
                    "(train.epochs): set neighbours.renew below it"
                )
            if self.train.average_from is not None:
                raise ValueError(
                    "neighbours.renew needs the weights of one epoch, and train.average_from averages those of many: "
                    "leave one of them out"
                )
        return self


class TreaderDetails(Details):
    """Facts that a model stores next to its settings and arrays."""

    features: None = None  # it ranks texts only
    width: int  # of a word's vector
    renewed: bool = False  # whether the teacher compares with the fine-tuned encoder


class TreaderNetwork(Network):
    """Words or encoder, scope, dual reader, output layer; without `descriptions`, there is no teacher."""

    def __init__(
        self, encoder: Encoder, config: TreaderConfig, n_labels: int, descriptions: NDArray[np.integer] | None
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.snapshot: nn.Module | None = None  # see `renewal`; used only in training
        self.scope: ScopeReader | None = None
        if descriptions is not None:
            rows = torch.from_numpy(descriptions.astype(np.int64))
            # an encoder's word embeddings are far smaller than its states, next to which they are read
            scale = 1.0 if isinstance(encoder, WordEncoder) else spread_scale(encoder)
            self.scope = ScopeReader(rows, encoder.width, scale)
        longest = config.words.max_words if config.text == "words" else config.encoder.max_length
        self.reader = DualReader(encoder.width, longest, config.reader, config.head)
        self.dropout = Dropout(config.head.dropout)
        self.head = VotingHead(config.head.bottleneck, n_labels, config.head.initial_bias)
        voting = config.head.vote != "none" and self.scope is not None
        self.vote = VoteHead(n_labels, log=config.head.vote == "log") if voting else None

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return Σ over documents and labels of BCE (Eq. 19 on logits), and the number of documents."""
        total = self.head.voted_loss(self.dropout(self._read(batch)), batch, self._votes(batch))
        return total, torch.tensor(float(len(batch)), device=total.device)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Return (labels, σ of their logits) of the k best labels."""
        return self.head.voted_rank(self._read(batch), k, self._votes(batch))

    def score(self, batch: Batch, label: int) -> Tensor:
        """Return the score that an explanation uses, the label's logit: (B,)."""
        return self.head.voted_score(self._read(batch), label, self._votes(batch))

    def _votes(self, batch: Batch) -> Votes | None:
        if self.vote is None:
            return None
        assert isinstance(batch, TaughtBatch)  # a network that counts votes receives scopes
        votes: Votes = self.vote(batch)
        return votes

    def _read(self, batch: Batch) -> Tensor:
        """Return O_Interaction: (B, bottleneck)."""
        states, mask = self.encoder(batch.ids, batch.mask, batch.lower).states[-1], batch.mask  # E_x
        if self.encoder.layout.pad_left:  # the reader counts positions from the first word
            order = (~mask).int().argsort(dim=1, stable=True)
            states, mask = states.gather(1, order.unsqueeze(2).expand_as(states)), mask.gather(1, order)
        scope = None
        if self.scope is not None:
            assert isinstance(batch, TaughtBatch)  # a network with a teacher receives scopes
            scope = self.scope(batch, self.encoder.embed_words())  # E_y′
        read: Tensor = self.reader(states, mask, scope)
        return read
