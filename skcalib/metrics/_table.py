"""Several metrics of one or several models, as a table."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from .._data import check_predictions
from .._inputs.arrays import ArrayLike, format_value
from .._inputs.probabilities import check_outcomes_by_model
from .._inputs.scikit_learn import Label
from .._numerics.logits import PROPER_LOSSES
from ._binned import expected_calibration_error
from ._registry import METRICS, MetricNames, resolve_metric
from ._statistic import check_metric_fits


def _brier_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Return the Brier score of any number of classes, which old releases of scikit-learn lack."""
    data = check_predictions(y_true, y_proba, sample_weight, labels=labels)
    return float(data.weight @ PROPER_LOSSES["brier"](data.proba, data.label))


_DEFAULT_METRICS: dict[str, str | Callable] = {
    "ECE": "expected_calibration_error",
    "adaptive ECE": partial(expected_calibration_error, strategy="quantile"),
    "classwise ECE": partial(expected_calibration_error, multi_class="classwise"),
    "log loss": log_loss,
    "Brier score": _brier_score,
}


def metric_table(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    metrics: Mapping[str, str | Callable] | list[str] | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
) -> dict[str, list]:
    """Tabulate several metrics of one or several models.

    By default what papers on deep learning report: the expected calibration error (ECE) with bins
    of equal width, of equal mass (adaptive), and of each class against the rest (classwise), the
    log loss (negative log-likelihood, NLL) and the Brier score. A dict of probabilities holds
    several models by their names; a dict of labels those of each, such as whether its answers were
    right.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or dict of them
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), or dict of them
        Probabilities of the positive class, or of all classes (rows sum to 1).

    metrics : list of str, or dict of str to str or callable, default=None
        Names of metrics, as :func:`capabilities` lists them; or for each column the name of a
        metric, its function, or a :func:`functools.partial` of it.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights; only their ratios matter.

    pos_label : int, float, bool or str, default=None
        The class of a one-dimensional `y_proba`; by default the last of `labels`. Where labels are
        names, such as "yes" and "no", pass one of them.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns; by default the sorted labels in `y_true`. If these
        are only 0, or only 1, the other is added.

    Returns
    -------
    table : dict of str to list
        Ready for :class:`pandas.DataFrame`, with a row for each model: "model" if `y_proba` is a
        dict, and each metric.

    See Also
    --------
    skcalib.uncertainty.compare_models : Whether a difference could be chance.
    skcalib.report.calibration_report : What is wrong with one model.

    Notes
    -----
    The ECE of a calibrated model is not 0: two rows may differ by chance.

    Examples
    --------
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.metrics import metric_table
    >>> y_true, y_proba = make_temperature_family(1000, inverse_temperature=2, random_state=0)
    >>> table = metric_table(y_true, {"mine": y_proba, "constant": 0 * y_proba + 0.5})
    >>> table["ECE"]
    [0.1..., 0.0...]
    """
    columns = dict.fromkeys(metrics) if isinstance(metrics, list) else metrics
    if columns is None:
        columns = _DEFAULT_METRICS
    is_metric = isinstance(columns, Mapping) and all(
        metric is None or isinstance(metric, str) or callable(metric) for metric in columns.values()
    )
    if not is_metric or not columns:
        raise TypeError(
            "metrics must be a list of names or a dict of column and metric; found "
            f"{format_value(metrics)}. Pass {{'ECE': 'expected_calibration_error'}}, for example."
        )
    models = y_proba if isinstance(y_proba, Mapping) else {"": y_proba}
    outcomes = y_true if isinstance(y_true, Mapping) else dict.fromkeys(models, y_true)
    check_outcomes_by_model(outcomes, models, "y_proba")
    table: dict[str, list] = {"model": list(models)} if models is y_proba else {}
    data_args: Any = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    checked = [
        (check_predictions(outcomes[name], proba, **data_args), np.ndim(proba) > 1)
        for name, proba in models.items()
    ]
    weighted = sample_weight is not None
    for title, column in columns.items():
        metric = title if column is None else column
        MetricNames("metrics", METRICS).is_satisfied_by(metric)
        table[title] = []
        for data, as_matrix in checked:
            entry, options = resolve_metric(metric, as_matrix=as_matrix, weighted=weighted)
            check_metric_fits(entry, data, "metrics")
            table[title].append(entry.measure(data, **options))
    return table
