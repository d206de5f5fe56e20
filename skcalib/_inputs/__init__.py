"""What users pass, judged once, before any work."""
