"""What live agents ask a person: permissions, questions, plans."""
