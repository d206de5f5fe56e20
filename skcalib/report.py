"""A report on calibration, in the manner of scikit-learn's `classification_report`."""

import textwrap

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.utils import check_random_state

from ._validation import METRIC_CONSTRAINTS, check_predictions, validate_params
from .hypothesis_tests import CalibrationTest
from .metrics import (
    calibration_distance_bounds,
    expected_calibration_error,
    smooth_calibration_error,
)

__all__ = ["calibration_report"]

_LEVEL = 0.05

# The test multiplies n x n by n x (classes · resamples) matrices when there are more than two
# classes: so many multiplications take about ten seconds.
_MULTIPLICATIONS = 2e11


@validate_params(
    METRIC_CONSTRAINTS | {"random_state": ["random_state"], "output_dict": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def calibration_report(
    y_true,
    y_proba,
    *,
    sample_weight=None,
    pos_label=None,
    labels=None,
    random_state=None,
    output_dict=False,
):
    """Report how well predicted probabilities are calibrated, and whether that could be chance.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class whose probability a one-dimensional `y_proba` holds. By default the last of
        `labels`.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`.

    random_state : int, RandomState instance or None, default=None
        Seed of the test's resampling. Pass an int for a report that can be repeated.

    output_dict : bool, default=False
        Whether to return the numbers instead of the text.

    Returns
    -------
    report : str or dict
        The text, or a dictionary with the keys "n_samples", "n_classes", "accuracy",
        "mean_confidence", "brier_score_loss", "log_loss", "smooth_calibration_error",
        "expected_calibration_error" (for more than two classes these two end in "_confidence" and
        "_classwise"), "distance_lower_bound", "distance_upper_bound" (between which the distance to
        calibration lies; for more than two classes they end in "_confidence"),
        "squared_kernel_calibration_error", "p_value", "n_tested" (the number of samples in the last
        two) and "advice".

    See Also
    --------
    skcalib.metrics : The measures one by one.
    skcalib.hypothesis_tests.CalibrationTest : The test, with all its options.

    Notes
    -----
    The p-value is that of ``CalibrationTest()``. For more than two classes and many samples the
    test and its statistic use a random part of the samples, so that the report takes seconds; it
    says of how many. The bandwidth of that statistic is the median for the predictions at hand, so
    its values for two models are not comparable. The log loss is scikit-learn's, which keeps
    probabilities 2.2e-16 away from 0 and 1 and so is finite.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.report import calibration_report
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.random(1000)
    >>> y = rng.random(1000) < proba
    >>> print(calibration_report(y, proba, random_state=0))
    Calibration of 1000 predictions, 2 classes
    ...
    """
    predictions = check_predictions(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    numbers = _measures(predictions) | _test(predictions, check_random_state(random_state))
    numbers["advice"] = _advice(numbers, predictions)
    return numbers if output_dict else _format_report(numbers)


def _measures(predictions):
    label, weight = predictions.label, predictions.weight
    proba = predictions.matrix
    classes = np.arange(proba.shape[1])
    simplex = proba / proba.sum(axis=1, keepdims=True)
    top = np.argmax(proba, axis=1)
    numbers = {
        "n_samples": len(label),
        "n_classes": len(classes),
        "accuracy": float(weight @ (top == label)),
        "mean_confidence": float(weight @ proba.max(axis=1)),
        "brier_score_loss": float(
            brier_score_loss(label, simplex, sample_weight=weight, labels=classes)
        ),
        "log_loss": float(log_loss(label, simplex, sample_weight=weight, labels=classes)),
    }
    for metric in (smooth_calibration_error, expected_calibration_error):
        reductions = {"": "confidence"} if predictions.is_binary else _REDUCTIONS
        for suffix, multi_class in reductions.items():
            numbers[metric.__name__ + suffix] = metric(
                label,
                predictions.proba,
                sample_weight=weight,
                labels=classes,
                multi_class=multi_class,
            )
    suffix = "" if predictions.is_binary else "_confidence"
    numbers["distance_lower_bound" + suffix], numbers["distance_upper_bound" + suffix] = (
        calibration_distance_bounds(label, predictions.proba, sample_weight=weight, labels=classes)
    )
    return numbers


_REDUCTIONS = {"_confidence": "confidence", "_classwise": "classwise"}


def _test(predictions, random_state):
    test = CalibrationTest(labels=np.arange(len(predictions.classes)), random_state=random_state)
    n_tested = len(predictions.label)
    if not predictions.is_binary:
        affordable = np.sqrt(_MULTIPLICATIONS / (len(predictions.classes) * test.n_resamples))
        n_tested = min(n_tested, int(affordable))
    rows = slice(None)
    if n_tested < len(predictions.label):
        rows = random_state.permutation(len(predictions.label))[:n_tested]
    if n_tested == 1:
        test.set_params(estimator="biased")
    test.fit(
        predictions.proba[rows], predictions.label[rows], sample_weight=predictions.weight[rows]
    )
    return {
        "squared_kernel_calibration_error": test.statistic_,
        "p_value": test.p_value_,
        "n_tested": n_tested,
    }


def _advice(numbers, predictions):
    p_value = numbers["p_value"]
    matrix, label = predictions.matrix, predictions.label
    n_impossible = np.sum(matrix[np.arange(len(label)), label] == 0)
    if n_impossible:
        verdict = f"Miscalibrated: {n_impossible} label(s) occurred that had probability 0"
    elif p_value < _LEVEL:
        verdict = f"Miscalibrated (p = {p_value:.3g})"
    else:
        return (
            f"No evidence of miscalibration (p = {p_value:.3g}): a calibrated model often deviates "
            "as much. Few samples cannot show more."
        )
    confidence = matrix.max(axis=1)
    noise = np.sqrt(np.sum(predictions.weight**2 * confidence * (1 - confidence)))
    excess = numbers["mean_confidence"] - numbers["accuracy"]
    if abs(excess) > 2 * noise:
        direction = "overconfident" if excess > 0 else "underconfident"
        kind = f"on average it is {direction} by {abs(excess):.3f}"
    else:
        kind = "though the mean confidence agrees with the accuracy"
    return (
        f"{verdict}; {kind}. Recalibrate on data that the classifier was not fitted on, for "
        "instance with RecalibratedClassifier."
    )


_TITLES = {
    "accuracy": "accuracy",
    "mean_confidence": "mean confidence",
    "brier_score_loss": "Brier score",
    "log_loss": "log loss",
    "smooth_calibration_error": "smooth calibration error",
    "smooth_calibration_error_confidence": "smooth calibration error (confidence)",
    "smooth_calibration_error_classwise": "smooth calibration error (classwise)",
    "expected_calibration_error": "expected calibration error",
    "expected_calibration_error_confidence": "expected calibration error (confidence)",
    "expected_calibration_error_classwise": "expected calibration error (classwise)",
    "distance_lower_bound": "distance to calibration, at least",
    "distance_lower_bound_confidence": "distance to calibration (confidence), at least",
    "distance_upper_bound": "distance to calibration, at most",
    "distance_upper_bound_confidence": "distance to calibration (confidence), at most",
    "squared_kernel_calibration_error": "squared kernel calibration error",
    "p_value": "p-value of the calibration test",
}


def _format_row(key, *values):
    """A line of the report: the title of a number, and its values."""
    digits = "9.1e" if key == "squared_kernel_calibration_error" else "9.4f"
    return f"{_TITLES[key]:<48}" + "  ".join(format(value, digits) for value in values)


def _format_report(numbers):
    n_samples, n_tested = numbers["n_samples"], numbers["n_tested"]
    lines = [f"Calibration of {n_samples} predictions, {numbers['n_classes']} classes", ""]
    lines += [_format_row(key, numbers[key]) for key in _TITLES if key in numbers]
    if n_tested < n_samples:
        lines.append(f"(the last two of {n_tested} of the samples, chosen at random)")
    return "\n".join([*lines, "", textwrap.fill(numbers["advice"], width=76)])
