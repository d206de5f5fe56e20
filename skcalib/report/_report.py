"""A report on calibration, in the manner of scikit-learn's `classification_report`."""

from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .._inputs.checks import check_predictions
from .._inputs.constraints import METRIC_CONSTRAINTS
from .._sklearn import validate_params
from .._types import Label, RandomState
from ._numbers import measure, run_test
from ._text import advice, format_report


@validate_params(
    METRIC_CONSTRAINTS | {"random_state": ["random_state"], "output_dict": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def calibration_report(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    random_state: RandomState = None,
    output_dict: bool = False,
) -> str | dict:
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
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

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
    The p-value is that of ``CalibrationTest()``. With many samples (300 000 for two classes,
    fewer for more) the test and its statistic use a random part of them, so that the report takes
    seconds; the report says how many. The bandwidth of that statistic is the median for the
    predictions at hand, so its values for two models are not comparable. The log loss is
    scikit-learn's, which keeps probabilities 2.2e-16 away from 0 and 1 and so is finite.

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
    numbers = measure(predictions) | run_test(predictions, check_random_state(random_state))
    numbers["advice"] = advice(numbers, predictions)
    return numbers if output_dict else format_report(numbers)
