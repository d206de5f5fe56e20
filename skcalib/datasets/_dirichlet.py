"""Models with predictions from a Dirichlet distribution."""

import numpy as np
from sklearn.utils import check_random_state

from .._inputs.constraints import IntegerInterval
from .._inputs.drawing import draw_labels
from .._inputs.scikit_learn import StrOptions, validate_params
from .._inputs.types import RandomState


@validate_params(
    {
        "n_samples": [IntegerInterval(1)],
        "n_classes": [IntegerInterval(2)],
        "model": [StrOptions({"M1", "M2", "M3"})],
        "return_true_proba": ["boolean"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_dirichlet_family(
    n_samples: int = 250,
    *,
    n_classes: int = 10,
    model: str = "M1",
    return_true_proba: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    r"""Multi-class predictions from a Dirichlet distribution, of three models.

    The predictions of all three are the same, most of them with one or two large probabilities.
    They differ in the labels: drawn from the predictions (M1, calibrated), from the predictions in
    half of the cases and otherwise always the first class (M2), or uniformly from all classes, so
    that the predictions say nothing (M3). These are the models of Section 7 of [1]_.

    Parameters
    ----------
    n_samples : int, default=250
        Number of samples.

    n_classes : int, default=10
        Number of classes K, at least 2.

    model : {"M1", "M2", "M3"}, default="M1"
        Which model: the calibrated one, or one of the two that are not.

    return_true_proba : bool, default=False
        Whether to return the true probabilities too.

    random_state : int, RandomState instance or None, default=None
        Draws the predictions, then the labels. An integer gives the same predictions for every
        model.

    Returns
    -------
    y_true : ndarray of shape (n_samples,)
        Labels from 0 to ``n_classes - 1``. In a small sample some may be missing: pass
        ``labels=range(n_classes)`` to the metrics.

    y_proba : ndarray of shape (n_samples, n_classes)
        Predicted probabilities.

    true_proba : ndarray of shape (n_samples, n_classes)
        Probabilities of the labels given the predictions. Only if `return_true_proba` is True.

    Notes
    -----
    .. math::
        p \sim \mathrm{Dir}(0.1, \dots, 0.1), \quad
        \mathrm{M1}: y \sim \mathrm{Cat}(p), \quad
        \mathrm{M2}: y \sim \tfrac12 \mathrm{Cat}(p) + \tfrac12 \delta_0, \quad
        \mathrm{M3}: y \sim \mathrm{Cat}(\tfrac1K, \dots, \tfrac1K).

    The expected calibration error of the whole distribution, in total variation, is 0 for M1,
    :math:`(1 - 1/K) / 2` for M2, and :math:`(K/2)\, \mathrm{E}|b - 1/K|` with b from the Beta
    distribution with parameters 0.1 and 0.1 (K − 1) for M3: for ten classes 0, 0.45 and 0.71.
    Estimates in bins are far above: from 250 samples with ten intervals for each class they are
    0.44, 0.66 and 0.89 on average.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten and D. Zachariah (2019). Calibration tests in multi-class
       classification: A unifying framework. NeurIPS 2019. :arxiv:`1910.11385`

    Examples
    --------
    >>> from skcalib.datasets import make_dirichlet_family
    >>> from skcalib.metrics import squared_kernel_calibration_error
    >>> for model in ["M1", "M2", "M3"]:
    ...     y_true, y_proba = make_dirichlet_family(model=model, random_state=0)
    ...     print(model, round(squared_kernel_calibration_error(y_true, y_proba), 3))
    M1 0.0
    M2 0.086
    M3 0.016
    """
    rng = check_random_state(random_state)
    y_proba = rng.dirichlet(np.full(n_classes, 0.1), size=n_samples)
    if model == "M1":
        true_proba = y_proba
    elif model == "M2":
        true_proba = (y_proba + np.eye(n_classes)[0]) / 2
    else:
        true_proba = np.full_like(y_proba, 1 / n_classes)
    y_true = draw_labels(true_proba, 1, rng)[0].astype(int)
    return (y_true, y_proba, true_proba) if return_true_proba else (y_true, y_proba)
