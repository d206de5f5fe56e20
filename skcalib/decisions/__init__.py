"""Decisions by predictions: the best action, and the loss to expect of it."""

from ._actions import bayes_action, expected_loss
from ._loss import DecisionLoss

__all__ = ["DecisionLoss", "bayes_action", "expected_loss"]
