"""TaughtModel: rank texts with their scopes, and explain with neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xmtc.core.explanation import Explanation
from xmtc.core.storage import FolderWriter
from xmtc.core.texts import Texts
from xmtc.features.tokens import tokenize
from xmtc.methods.treader.inputs import TaughtInputs
from xmtc.methods.treader.network import TreaderNetwork
from xmtc.methods.treader.teacher import Teacher
from xmtc.methods.treader.word_encoder import WordEncoder
from xmtc.neural.batches import Inputs
from xmtc.neural.model import NeuralModel


@dataclass(frozen=True, eq=False, repr=False)
class TaughtModel(NeuralModel[TreaderNetwork]):
    """A network that reads every text with its scope; without a teacher, only the text."""

    teacher: Teacher | None

    def read(self, texts: Texts) -> Inputs:
        """Return the tokens of texts with their scopes."""
        inputs = super().read(texts)
        if self.teacher is None:
            return inputs
        return TaughtInputs(inputs.tokens, inputs.layout, self.teacher.teach(texts, inputs.tokens))

    def explain(self, text: str, label: str) -> Explanation:
        """Explain which words raised or lowered a label's score, which documents are similar, and the text's scope."""
        explanation = super().explain(text, label)
        if self.teacher is None:
            return explanation
        texts = Texts.pack([text])
        return self.teacher.explain(texts, tokenize(texts, self.tokenizer), explanation)

    def save_reader(self, out: FolderWriter) -> None:
        """Write the vocabulary or tokenizer, the descriptions' words, and the teacher."""
        if isinstance(self.network.encoder, WordEncoder):
            out.arrays("words", self.tokenizer.inner.arrays())
        else:
            super().save_reader(out)
        if self.teacher is not None and self.network.scope is not None:
            out.arrays("descriptions", {"words": self.network.scope.descriptions.cpu().numpy().astype(np.int32)})
            self.teacher.save(out)
