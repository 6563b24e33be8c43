"""Sidestage: outside agent sessions, visible and answerable from anywhere."""

__version__ = "0.1.0"
