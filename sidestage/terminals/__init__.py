"""Terminals of ours: values, rules, and the one door through which they start."""
