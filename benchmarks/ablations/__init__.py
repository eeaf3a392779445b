"""Ablations: what each paper claims by experiment, tried on this machine. A paper is one file: arms and claims.

python -m benchmarks.ablations lightxml --hours 3     run what is not yet in results/ablations/lightxml
python -m benchmarks.ablations lightxml --table       print the tables
"""
