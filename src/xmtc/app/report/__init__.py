"""Reports: one HTML file about one model, or about several models side by side. Prints nothing.

Call `check_report` before the evaluation, then `evaluate_to_page` or `compare_to_page`.
"""

from xmtc.app.report.comparison import compare_to_page
from xmtc.app.report.evaluation import evaluate_to_page
from xmtc.app.report.page import Source, check_report

__all__ = ["Source", "check_report", "compare_to_page", "evaluate_to_page"]
