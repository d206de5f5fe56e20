"""A mixture of tempered, given and uniform predictions."""

import numpy as np
from numpy.typing import ArrayLike

from .._inputs.predictions import Predictions
from .._numerics.array_api import Array
from .._numerics.logits import clipped
from .._numerics.temperature import best_temperature
from .._numerics.temperature_ensemble import best_mixture, mixed
from ._base import PRIOR_CONSTRAINTS, share_of_prior
from ._languages import Language, logs_of
from ._logits import ScoreRecalibrator, check_is_of_probabilities, write_logs
from ._prior import WEIGHT_OF_TEMPERATURE


class EnsembleTemperatureRecalibrator(ScoreRecalibrator):
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

    _parameter_constraints: dict = {
        **ScoreRecalibrator._parameter_constraints,
        **PRIOR_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        prior_weight: float = WEIGHT_OF_TEMPERATURE,
        input_type: str = "probabilities",
        labels: ArrayLike | None = None,
    ) -> None:
        self.prior_weight = prior_weight
        self.input_type = input_type
        self.labels = labels

    def _fit_scores(self, predictions: Predictions) -> None:
        predictions = predictions.sorted()

        def log_proba(rows: slice) -> np.ndarray:
            return self._log_proba(predictions, rows)

        data = predictions.label, predictions.weight
        prior = share_of_prior(predictions, self.prior_weight)
        start = best_temperature(log_proba, *data, prior)
        if start in (0, np.inf):
            start = 1.0
        self.temperature_, self.shares_ = best_mixture(log_proba, *data, prior, start)

    def _map_scores(self, log_proba: Array) -> Array:
        return mixed(log_proba, self.temperature_, self.shares_)

    def _write(self, language: Language, proba: list[str]) -> list[str]:
        check_is_of_probabilities(self)
        smallest, inverse = self.smallest_probability_, 1 / self.temperature_
        *shares, rest = self.shares_
        if len(proba) == 1:
            own = language.of_class(1)

            def mixture(kept: str) -> str:
                odds = own.linear(0.0, [inverse, -inverse], logs_of(own, kept))
                tempered = own.let("t", own.expit(odds))
                return own.linear(rest / 2, shares, [tempered, kept])

            low, high = smallest, 1 - smallest
            ends = self._map(np.array([low, high]))[:, 1]
            return [own.of_clipped(proba[0], low, high, ends, mixture)]
        logs, n_classes = write_logs(language, proba, smallest), len(proba)
        parts = []
        for name, factor in (("t", inverse), ("g", 1.0)):
            matrix = factor * np.eye(n_classes)
            softmax = language.softmax(logs, -np.log(smallest), matrix, np.zeros(n_classes))
            parts.append([language.of_class(k).let(name, q) for k, q in enumerate(softmax)])
        low, high = clipped(np.array([0.0, 1.0]))
        return [
            language.clip(
                own.let("m", own.linear(rest / n_classes, shares, both)), float(low), float(high)
            )
            for k, both in enumerate(zip(*parts, strict=True))
            for own in [language.of_class(k)]
        ]
