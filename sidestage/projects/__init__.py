"""Projects: the folders an owner registered."""
