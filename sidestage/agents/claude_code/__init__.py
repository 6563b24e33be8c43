"""Claude Code: where it keeps its sessions, and how to read them.

Everything here is measured, not promised (docs/discovery.md): parse tolerantly.
"""
