"""Applications on top of the library: the command line, HTML reports, the HTTP server and its web page.

`cli` calls `report` and `rest`, which do not depend on it; `web` contains the files of the web page. The modules in
this folder are shared by several of them. Nothing here computes rankings or scores.
"""
