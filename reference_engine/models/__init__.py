"""Models in memory: their names, where their files are, and the variants that stand for cheaper servers."""
