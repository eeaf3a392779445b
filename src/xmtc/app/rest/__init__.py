"""The server: HTTP in front of loaded models. Needs the extra `serve`; nothing else of xmtc imports this room."""
