"""One file a rival: `train` and `predict`, run in that rival's environment. They import no xmtc.

A driver gets a job: `data` (folder of matrices, texts and labels), `model` (folder to save to), `top` (file for the
ranking), `k`, `threads`, `seed`, `settings`, `encoder` (folder of weights, if it needs any). It times training up to
the model on disk, and prediction of all test documents.
"""
