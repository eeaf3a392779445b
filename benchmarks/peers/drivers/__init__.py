"""One file a rival: `train` and `predict`, run in that rival's environment. They import no xmtc.

A driver gets a job: `data` (folder of matrices), `model` (folder to save to), `top` (file for the ranking), `k`,
`threads`, `seed`, `settings`. It times training up to the model on disk, and prediction of all test documents.
"""
