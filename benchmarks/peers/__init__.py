"""Rivals on the same matrices as xmtc's linear method, each in an environment and processes of its own.

python -m benchmarks.peers cooking tate [--only omikuji,pecos] [--work DIR]
"""
