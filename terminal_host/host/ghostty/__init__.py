"""The screen engine on libghostty: fed as xterm.js would read, repainted completely."""
