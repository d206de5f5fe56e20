"""Weights for measures of outcomes by a horizon, where some follow-up ended early."""

from numbers import Real

import numpy as np

from .._inputs.arrays import ArrayLike
from .._inputs.by import check_by
from .._inputs.checks import check_follow_up
from .._inputs.scikit_learn import Interval, validate_params


@validate_params({"horizon": [Interval(Real, None, None, closed="neither")]})
def censoring_weights(
    time: ArrayLike, event: ArrayLike, horizon: float, *, by: ArrayLike | None = None
) -> np.ndarray:
    r"""Inverse probability of censoring weights for outcomes by a horizon.

    Whoever leaves before the horizon has an outcome that is not known, and those with early events
    are known more often than those without. The weights undo this: pass them as `sample_weight`,
    with ``event & (time <= horizon)`` as the labels.

    Parameters
    ----------
    time : array-like of shape (n_samples,)
        Time of the event, or the last time at which none had occurred.

    event : array-like of shape (n_samples,)
        True or 1 where the event was observed; False or 0 where it was censored: it is later.

    horizon : float
        The time until which the risk is predicted, in the units of `time`.

    by : array-like of shape (n_samples,), default=None
        Subgroups in which censoring is estimated separately, such as quarters of the predicted
        risk. By default it is taken to have nothing to do with the risk.

    Returns
    -------
    weight : ndarray of shape (n_samples,)
        0 for those who were censored before the horizon, else at least 1; their sum is the number
        of samples.

    See Also
    --------
    skcalib.forecasts.impute_censored : For tests of forecasts of the time itself, which are exact.

    Notes
    -----
    G(t) is the Kaplan–Meier estimate of the probability of not being censored by t, where events
    come before censorings at the same time. An event at t, until the horizon, has the weight
    :math:`1/G(t-)` [1]_; whoever is still under observation at the horizon h, also one who is
    censored at it, :math:`1/G(h-)`. The weighted share of events is then exactly the Kaplan–Meier
    estimate of the risk until h, in each subgroup. Cost: :math:`O(n \log n)`.

    The weights depend on the labels. So tests with these weights are not exact, and intervals take
    the weights as known.

    References
    ----------
    .. [1] Graf, Schmoor, Sauerbrei and Schumacher (1999). Assessment and comparison of prognostic
       classification schemes for survival data. Statistics in Medicine.
       :doi:`10.1002/(SICI)1097-0258(19990915/30)18:17/18<2529::AID-SIM274>3.0.CO;2-5`

    Examples
    --------
    The second of four leaves before the horizon; a share 2/3 of those left at that time stays.

    >>> from skcalib.metrics import censoring_weights
    >>> censoring_weights(time=[1, 2, 3, 5], event=[1, 0, 1, 0], horizon=4)
    array([1. , 0. , 1.5, 1.5])
    """
    value, observed = check_follow_up(time, event)
    weight = np.empty(len(value))
    for rows in [np.arange(len(value))] if by is None else check_by(by, len(value)).rows():
        rows = rows[np.lexsort((~observed[rows], value[rows]))]  # events first
        times, is_event = value[rows], observed[rows]
        if times[-1] < horizon and not is_event[-1]:
            raise ValueError(
                "horizon must not lie beyond the follow-up, of each subgroup; found "
                f"{horizon:g}, with the last censored at {times[-1]:g}. Choose an earlier one."
            )
        stays = np.cumprod(np.where(is_event, 1.0, 1 - 1 / np.arange(len(rows), 0, -1)))
        n_before = np.searchsorted(times, np.minimum(times, horizon))
        weight[rows] = (is_event | (times >= horizon)) / np.append(1.0, stays)[n_before]
    return weight
