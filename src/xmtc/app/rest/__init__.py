"""The HTTP server for loaded models. Needs the extra `serve`, so import this package only to serve.

Call `open_socket`, then `serve_models` for one process, or `serve_with_workers` for several.
"""

from xmtc.app.rest.server import open_socket, serve_models
from xmtc.app.rest.settings import ServerSettings
from xmtc.app.rest.workers import serve_with_workers

__all__ = ["ServerSettings", "open_socket", "serve_models", "serve_with_workers"]
