"""AdamW whose cost depends on the number of rows that a step updates.

A step updates only a few thousand rows of a label table of 670,000; dense AdamW would read and write all rows and their
moments. Here a parameter with a sparse gradient (nn.Embedding(sparse=True)) is updated only in the rows of its
gradient. Moments and weights of a row decay only when it is updated, and the bias correction counts the row's own
updates. If every step updates every row, this is exactly AdamW.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class RowSparseAdamW(torch.optim.Optimizer):
    """AdamW (Loshchilov and Hutter 2019) for tables with sparse gradients."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update the rows that have gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["mean"] = torch.zeros_like(parameter)
            state["square"] = torch.zeros_like(parameter)
            state["updates"] = torch.zeros(len(parameter), device=parameter.device)  # integers
        gradient = gradient.coalesce()
        rows, values = gradient.indices()[0], gradient.values()  # (R,), (R, d)
        beta1, beta2 = group["betas"]
        updates = state["updates"][rows] + 1
        mean = state["mean"][rows].lerp_(values, 1 - beta1)
        square = state["square"][rows].mul_(beta2).addcmul_(values, values, value=1 - beta2)
        state["updates"][rows] = updates
        state["mean"][rows] = mean
        state["square"][rows] = square
        # in double precision: 1 − 0.999 would lose four digits
        correction1, correction2 = ((1 - beta ** updates.double()).to(values.dtype)[:, None] for beta in (beta1, beta2))
        shift = mean.div_(correction1).div_(square.div_(correction2).sqrt_().add_(group["eps"]))
        shrunk = parameter[rows].mul_(1 - group["lr"] * group["weight_decay"])
        parameter[rows] = shrunk.sub_(shift, alpha=group["lr"])
