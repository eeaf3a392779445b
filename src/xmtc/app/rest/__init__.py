"""The server: HTTP in front of loaded models. Needs the extra `serve`, so import this room only to serve.

Call `open_socket`, then `serve_models`.
"""

from xmtc.app.rest.server import open_socket, serve_models

__all__ = ["open_socket", "serve_models"]
