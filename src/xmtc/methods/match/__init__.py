"""Find labels by their names in a text, even labels without training documents; see docs/methods/match.md."""

from xmtc.methods.match.method import MatchMethod

METHOD = MatchMethod()

__all__ = ["METHOD"]
