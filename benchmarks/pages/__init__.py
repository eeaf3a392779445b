"""The pages of docs/results and the part of README.md on results, each from benchmarks/results and nothing else.

`systems` gathers what was measured of each system on a set; `markup` makes links to the results and marks older code;
one module each makes the first page, the pages of sets, of papers and of topics. `benchmarks.tables` writes them.
"""
