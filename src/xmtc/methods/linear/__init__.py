"""The sparse linear tree; docs/methods/linear.md describes it."""

from xmtc.methods.linear.kernels import compile_kernels
from xmtc.methods.linear.method import LinearMethod

METHOD = LinearMethod()

__all__ = ["METHOD", "compile_kernels"]
