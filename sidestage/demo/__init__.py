"""A demonstration: a scratch home with a scripted agent in every state.

Nothing of it touches the owner's home, agents or server. The agent is the stand-in that
our tests hold to the real one.
"""
