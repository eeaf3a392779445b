"""Labels found by their names in a text, whether or not a training document has them; docs/methods/match.md."""

from xmtc.methods.match.method import MatchMethod

METHOD = MatchMethod()

__all__ = ["METHOD"]
