"""A table of the abilities of all metrics."""

from typing import Any

from ._registry import ALL_METRICS


def capabilities() -> dict[str, list[Any]]:
    """Tabulate what each metric can do.

    Returns
    -------
    table : dict of str to list
        Ready for :class:`pandas.DataFrame`, with a row for each metric: its "name", which tests and
        intervals take; the name of its "scorer"; whether it takes probabilities of "classes" and
        "forecasts" of a number; whether it is a "mean" over samples; whether a
        :class:`skcalib.streaming.CalibrationState` gives it ("streaming"); whether a test of it
        takes "groups", as its intervals always do; whether it has a
        :func:`skcalib.uncertainty.finite_sample_radius` ("finite_sample"); whether it takes
        "multi_class"; whether it needs a condition ("given"); and how its "cost" grows with the
        number of samples n.

    See Also
    --------
    get_scorer_names : The names of the scorers alone.

    Examples
    --------
    >>> from skcalib.metrics import capabilities
    >>> table = capabilities()
    >>> row = table["name"].index("smooth_calibration_error")
    >>> table["scorer"][row], table["forecasts"][row], table["cost"][row]
    ('neg_smooth_calibration_error', False, 'n log n')
    """
    metrics = [ALL_METRICS[name] for name in sorted(ALL_METRICS)]
    return {
        "name": [metric.name for metric in metrics],
        "scorer": [f"neg_{metric.name}" for metric in metrics],
        "classes": ["classes" in metric.takes for metric in metrics],
        "forecasts": ["forecasts" in metric.takes for metric in metrics],
        "mean": [not metric.chosen for metric in metrics],
        "streaming": [metric.supports_counts for metric in metrics],
        "groups": [metric.supports_groups for metric in metrics],
        "finite_sample": [metric.radius is not None for metric in metrics],
        "multi_class": ["multi_class" in metric.parameters for metric in metrics],
        "given": [metric.requires_given for metric in metrics],
        "cost": [metric.cost for metric in metrics],
    }
