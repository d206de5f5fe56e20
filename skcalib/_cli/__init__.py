"""The command line, which reads tables with pandas and writes reports and recalibrated tables."""
