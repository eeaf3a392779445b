"""Applications on top of the library: the command line, HTML reports, the HTTP server and its web page.

`cli`, `report`, `rest` and `web` are rooms of their own; `cli` calls `report` and `rest`, which know nothing of it. The
modules beside them are what several rooms share. Computes no ranking and no score.
"""
