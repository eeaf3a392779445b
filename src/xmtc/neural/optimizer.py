"""Update weights: optimizers, learning rates, averaged weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

Schedule = Literal["constant", "linear", "slanted"]


@dataclass(frozen=True)
class Group:
    """Parameters that share a learning rate and a weight decay."""

    parameters: Sequence[nn.Parameter]
    rate: float
    decay: float = 0.0
    row_sparse: bool = False  # a label table whose gradient has few nonzero rows


def group_by_decay(modules: Iterable[nn.Module | None], rate: float, decay: float) -> list[Group]:
    """Return trained parameters of modules as groups: decay on all but biases and norms. Modules may be None."""
    there = [module for module in modules if module is not None]
    named = [(name, p) for module in there for name, p in module.named_parameters() if p.requires_grad]
    # XLNet has two-dimensional biases; norms have one dimension in every family, whatever their name
    decays = [p.ndim > 1 and not name.endswith("bias") for name, p in named]
    groups = []
    for decayed in (True, False):
        members = [p for (_, p), flag in zip(named, decays, strict=True) if flag == decayed]
        groups.append(Group(members, rate, decay if decayed else 0.0))
    return [group for group in groups if group.parameters]


def build_optimizers(groups: Sequence[Group]) -> list[torch.optim.Optimizer]:
    """Return AdamW for the dense groups and its row-sparse variant for the others; skip one without parameters."""
    dense, sparse = (
        [{"params": list(g.parameters), "lr": g.rate, "weight_decay": g.decay} for g in groups if g.row_sparse == flag]
        for flag in (False, True)
    )
    optimizers: list[torch.optim.Optimizer] = []
    if dense:
        optimizers.append(torch.optim.AdamW(dense, fused=True))
    if sparse:
        from xmtc.neural.row_sparse import RowSparseAdamW

        optimizers.append(RowSparseAdamW(sparse))
    return optimizers


def take_step(
    optimizers: Sequence[torch.optim.Optimizer],
    parameters: Sequence[nn.Parameter],
    clip: float | None,
    scaler: torch.amp.GradScaler | None,
) -> None:
    """Clip the gradients and step all optimizers; `scaler` is that of half precision."""
    if scaler is not None:
        for optimizer in optimizers:
            scaler.unscale_(optimizer)
    if clip is not None:
        clip_gradients(parameters, clip)
    for optimizer in optimizers:
        if scaler is not None:
            scaler.step(optimizer)
        else:
            optimizer.step()
    if scaler is not None:
        scaler.update()  # once, after all optimizers


@torch.no_grad()
def scale_gradients(parameters: Iterable[nn.Parameter], factor: Tensor) -> None:
    """Multiply all gradients, including sparse ones, by a number."""
    for value in _gradients(parameters):
        value.mul_(factor)


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> None:
    """Scale all gradients so that their joint norm is at most `limit`, as torch's clip_grad_norm_ does."""
    values = _gradients(parameters)
    if not values:
        return
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(values)))
    torch._foreach_mul_(values, (limit / (norm + 1e-6)).clamp(max=1.0))


def _gradients(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """Return dense gradients, and the values of sparse ones with duplicate rows merged."""
    values = []
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            values.append(parameter.grad.values())
        else:
            values.append(parameter.grad)
    return values


def factor(schedule: Schedule, step: float, n_steps: int, warmup: float) -> float:
    """Return the factor of step `step` (from 0) of n_steps; `warmup` is the share of steps spent rising from 0 to 1.

    After warm-up, constant stays at 1; the others fall to 0 at the end. Papers use two names for this curve: linear
    decay with warm-up, and slanted triangular (Howard and Ruder 2018; APLC-XLNet Eq. 15, whose 0/0 without warm-up is
    taken as 1: training starts at the full rate).
    """
    rise = warmup * n_steps
    if step < rise:
        return step / rise
    if schedule == "constant":
        return 1.0
    return max(0.0, (n_steps - step) / max(1.0, n_steps - rise))


@dataclass
class WeightAverage:
    """The running mean of a network's floating-point weights during training (SWA; Izmailov et al. 2018)."""

    mean: dict[str, Tensor] = field(default_factory=dict)
    count: int = 0

    @torch.no_grad()
    def add(self, network: nn.Module) -> None:
        """Add the current weights to the mean."""
        self.count += 1
        for name, value in network.state_dict().items():
            if not value.is_floating_point():
                continue
            if name in self.mean:
                self.mean[name].lerp_(value, 1 / self.count)
            else:
                self.mean[name] = value.clone()

    @torch.no_grad()
    def swap(self, network: nn.Module) -> None:
        """Swap the network's weights with the mean; a second call restores them."""
        for name, value in network.state_dict().items():
            if name in self.mean:
                held = value.clone()
                value.copy_(self.mean[name])
                self.mean[name].copy_(held)
