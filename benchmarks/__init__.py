"""Benchmarks: xmtc and its rivals on the same data. Figures go to results/ as JSON, and from there to docs/results.

A benchmark is one file, or a small package, that describes itself with `benchmarks.framework.Benchmark`. README.md
lists the commands.

python -m benchmarks.linear cooking tate       train and score xmtc's linear method
python -m benchmarks.peers cooking tate        train the rivals, and compare each with xmtc's stored ranking
python -m benchmarks.tables                    write docs/results from the JSON
"""
