"""Softmax of log-probabilities divided by a temperature, and its mixtures."""

from functools import partial

import numpy as np

from .._inputs.predictions import Predictions
from .._numerics.array_api import Array
from .._numerics.temperature import best_mixture, best_temperature, mixed, tempered
from ._base import PRIOR_CONSTRAINTS, share_of_prior
from ._logits import LogScaleRecalibrator


class TemperatureRecalibrator(LogScaleRecalibrator):
    r"""Recalibration by a temperature.

    One number makes all predictions more or less confident; the order of the classes in each row
    stays.

    Parameters
    ----------
    prior_weight : float, default=8.0
        Number of additional samples, with labels distributed as predicted, that the fit treats as
        seen. They draw it to the predictions, and help with few samples. 0 is plain maximum
        likelihood. None is the same, but becomes 1 where maximum likelihood would end in certainty,
        at T = 0.

    input_type : {"probabilities", "logits"}, default="probabilities"
        What `X` holds. Logits are the scores of a classifier before its softmax, from -1e6 to 1e6;
        in one column, the log-odds of the last class. Their log-softmax takes the place of log p,
        without clipping. Logits are declared here, never guessed from their values.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.
        Needed if a class does not occur in the calibration data.

    Attributes
    ----------
    temperature_ : float
        T, between 0 and infinity; above 1, the predictions were too confident.

    smallest_probability_ : float
        Where logarithms are taken, probabilities are clipped to at least this distance from 0 and
        1. It is the machine epsilon, or, if the calibration data contain exact zeros, half of the
        smallest positive probability (at most half of 1/K). It is 0 with logits.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result.

    n_features_in_ : int
        Number of columns of `X` at `fit` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    VectorScalingRecalibrator : A scale and a shift for each class.
    MatrixScalingRecalibrator : Close to a temperature with few samples, richer with many.

    Notes
    -----
    The calibrated probabilities are :math:`\mathrm{softmax}(\log p / T)` with the T in :math:`[0,
    \infty]` of the least log loss [1]_. The loss is convex in 1/T, and the minimum exact: Newton's
    method in a bracket, at :math:`O(n K)` a step, needs three or four steps after a start from a
    sample. :math:`T = \infty`, which means 1/K for all, if the predictions inform no better than
    that. :math:`T = 1`, if all T fit equally well (constant rows).

    If every label has the largest probability of its row, no T above 0 is best. At :math:`T = 0`
    the row's largest probabilities share everything; that is the fit with `prior_weight=0`. It
    happens with few samples, and new ones are seldom as certain. With a positive `prior_weight` T
    is positive.

    Results are kept at least the machine epsilon away from 0 and 1, so that their log loss is
    finite.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017). On Calibration of Modern Neural
       Networks. ICML 2017. :arxiv:`1706.04599`

    Examples
    --------
    >>> from skcalib.recalibration import TemperatureRecalibrator
    >>> recalibrator = TemperatureRecalibrator(prior_weight=0)
    >>> round(recalibrator.fit([0.9, 0.9, 0.9, 0.1], [1, 1, 0, 0]).temperature_, 6)
    2.0
    >>> recalibrator.predict_proba([0.9])
    array([[0.25, 0.75]])
    >>> TemperatureRecalibrator().fit([0.9, 0.9, 0.9, 0.1], [1, 1, 0, 0]).temperature_
    1.26...
    """

    _parameter_constraints: dict = {
        **LogScaleRecalibrator._parameter_constraints,
        "prior_weight": [*PRIOR_CONSTRAINTS["prior_weight"], None],
    }

    def _fit_scores(self, predictions: Predictions) -> None:
        log_proba = partial(self._log_proba, predictions)
        for prior_weight in (0.0, 1.0) if self.prior_weight is None else (self.prior_weight,):
            prior = share_of_prior(predictions, prior_weight)
            self.temperature_ = best_temperature(
                log_proba, predictions.label, predictions.weight, prior
            )
            if self.temperature_ > 0:
                break

    def _map_scores(self, log_proba: Array) -> Array:
        return tempered(log_proba, self.temperature_)

    def _linear_map(self) -> tuple[np.ndarray, np.ndarray]:
        if self.temperature_ == 0:
            raise ValueError(
                "temperature_ must be positive for a map of logits; found 0, which makes all of "
                "them infinite. Fit with a positive prior_weight, or with the default."
            )
        n_classes = len(self.classes_)
        return np.full(n_classes, 1 / self.temperature_), np.zeros(n_classes)


class EnsembleTemperatureRecalibrator(LogScaleRecalibrator):
    r"""Recalibration by a mixture of tempered, given and uniform predictions.

    Ensemble temperature scaling: a temperature, and two more numbers that say how much of the
    predictions as they are, and of equal probabilities of all classes, is mixed in. The order of
    the classes in each row stays.

    Parameters
    ----------
    prior_weight : float, default=8.0
        Number of additional samples, with labels distributed as predicted, that the fit treats as
        seen. They draw it to the predictions, keep it finite where the outcomes can be separated,
        and help with few samples. 0 is plain maximum likelihood.

    input_type : {"probabilities", "logits"}, default="probabilities"
        What `X` holds. Logits are the scores of a classifier before its softmax, from -1e6 to 1e6;
        in one column, the log-odds of the last class. Their log-softmax takes the place of log p,
        without clipping. Logits are declared here, never guessed from their values.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`.
        Needed if a class does not occur in the calibration data.

    Attributes
    ----------
    temperature_ : float
        T, positive; of no meaning if the share of tempered predictions is 0.

    shares_ : ndarray of shape (3,)
        The shares of tempered, given and uniform predictions in the mixture; at least 0, with sum
        1.

    smallest_probability_ : float
        Where logarithms are taken, probabilities are clipped to at least this distance from 0 and
        1. It is the machine epsilon, or, if the calibration data contain exact zeros, half of the
        smallest positive probability (at most half of 1/K). It is 0 with logits.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result.

    n_features_in_ : int
        Number of columns of `X` at `fit` (1 if one-dimensional).

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    See Also
    --------
    TemperatureRecalibrator : The temperature alone.

    Notes
    -----
    The calibrated probabilities are

    .. math::
        q = w_1 \, \mathrm{softmax}(\log p / T) + w_2 \, p + w_3 / K, \qquad
        w_1, w_2, w_3 \ge 0, \quad w_1 + w_2 + w_3 = 1,

    with the least log loss of the labels and the prior [1]_. The uniform part helps where some
    labels are wrong or out of reach of the classifier: no prediction is then surer than the share
    of these allows.

    For given T the loss is convex in the shares, and they are exact. In T it can have several
    minima. The search starts at the best single temperature (or 1, if that is 0 or infinite), so
    that the result is at least as good as that one, and as the shares at that temperature, which
    [1]_ takes. Temperatures up to 32 times larger and smaller are tried in factors of 2, on about
    4000 to 8000 samples if there are more; near the best one, T is the root of the derivative. The
    three parts are not always distinct: at T = 1 only the sum of the first two shares matters.

    A pass over the data costs :math:`O(n K)`; the search takes 10 to 60 of them over all samples,
    and about as many over the few. Results are kept at least the machine epsilon away from 0 and 1,
    so that their log loss is finite.

    References
    ----------
    .. [1] J. Zhang, B. Kailkhura and T. Y.-J. Han (2020). Mix-n-Match: Ensemble and Compositional
       Methods for Uncertainty Calibration in Deep Learning. ICML 2020. :arxiv:`2003.07329`

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.datasets import make_temperature_family
    >>> from skcalib.recalibration import EnsembleTemperatureRecalibrator
    >>> y, proba = make_temperature_family(20000, inverse_temperature=2, random_state=0)
    >>> y[::5] = 1 - y[::5]  # a fifth of the labels is wrong
    >>> recalibrator = EnsembleTemperatureRecalibrator().fit(proba, y)
    >>> recalibrator.shares_.round(1)
    array([0.6, 0. , 0.4])
    """

    _fits_in_place = False

    def _fit_scores(self, predictions: Predictions) -> None:
        predictions = predictions.sorted()
        log_proba = partial(self._log_proba, predictions)
        data = predictions.label, predictions.weight
        prior = share_of_prior(predictions, self.prior_weight)
        start = best_temperature(log_proba, *data, prior)
        if start in (0, np.inf):
            start = 1.0
        self.temperature_, self.shares_ = best_mixture(log_proba, *data, prior, start)

    def _map_scores(self, log_proba: Array) -> Array:
        return mixed(log_proba, self.temperature_, self.shares_)

    def _linear_map(self) -> tuple[np.ndarray, np.ndarray]:
        raise ValueError(
            "A mixture of predictions is no linear map of their logits, which a module could be; "
            "found EnsembleTemperatureRecalibrator. Choose a TemperatureRecalibrator."
        )
