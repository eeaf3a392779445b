"""The sparse linear tree; see docs/methods/linear.md."""

from xmtc.methods.linear.kernels import compile_kernels
from xmtc.methods.linear.method import LinearMethod

METHOD = LinearMethod()

__all__ = ["METHOD", "compile_kernels"]
