"""Carrying push messages: Web Push and signed webhooks over HTTPS."""
