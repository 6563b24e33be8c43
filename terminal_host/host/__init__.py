"""The terminal host: PTYs, sandboxes and screens, in a process of their own."""
