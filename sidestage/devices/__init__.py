"""Who may call: tokens, scopes and principals."""
