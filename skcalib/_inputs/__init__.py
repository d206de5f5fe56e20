"""Checks of all that users pass: judged once, before any work."""
