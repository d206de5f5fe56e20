"""Decisions by predictions: the best action, and the loss to expect of it."""

from ._guesses import guess_other_names
from .forecasts._decisions import DecisionLoss, bayes_action, expected_loss

__all__ = ["DecisionLoss", "bayes_action", "expected_loss"]

guess_other_names(__name__)
