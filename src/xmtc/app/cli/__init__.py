"""The command line."""

from xmtc.app.cli.entry import main

__all__ = ["main"]
