"""Calibration for scikit-learn: measures, hypothesis tests and recalibrators.

Is my model calibrated, how far is it, which of these models is better calibrated, and how do I fix
it?
"""

__version__ = "0.1.0"
