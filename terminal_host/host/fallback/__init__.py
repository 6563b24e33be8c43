"""The screen engine where libghostty cannot be loaded: pyte, patched."""
