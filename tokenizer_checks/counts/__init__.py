"""Counts of prompt tokens alone: which tokenizer and template are they consistent with?"""
