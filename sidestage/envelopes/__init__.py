"""Sealed envelopes between the host and its devices: HPKE, keys, pairing proofs.

Pure functions and frozen values over PyNaCl's primitives; nothing here reads a file, a
clock or a database. `docs/handover-protocol.md` says the same to builders of apps.
"""
