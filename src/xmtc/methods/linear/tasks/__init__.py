"""Train in tasks: build the same model as in memory, byte for byte, from matrices on disk, on any engine."""

from xmtc.methods.linear.tasks.training import fits_memory, train_in_tasks

__all__ = ["fits_memory", "train_in_tasks"]
