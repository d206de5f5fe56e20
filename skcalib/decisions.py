"""Decisions by predictions: the best action, and the loss to expect of it."""

from .forecasts._decisions import DecisionLoss, bayes_action, expected_loss

__all__ = ["DecisionLoss", "bayes_action", "expected_loss"]
