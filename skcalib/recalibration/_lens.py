"""Recalibration of the binary problems of a lens."""

from dataclasses import KW_ONLY
from typing import Any, Literal

import numpy as np
from sklearn.metrics import log_loss
from sklearn.utils import Tags

from .._data import ClassData, MultilabelData, check_predictions
from .._inputs.annotations import Estimator
from .._inputs.arrays import ArrayLike
from .._inputs.scikit_learn import HasMethods, estimator_class
from ..lenses import Lens, _check_all_rows, _get_lens
from ._base import Recalibrator, is_smooth
from ._either import to_fit_data
from ._logistic import SigmoidRecalibrator


@estimator_class()
class LensRecalibrator(Recalibrator):
    r"""Recalibration of each binary problem of a lens by a map of its own.

    For ordered classes, and for labels that do not exclude each other.

    Parameters
    ----------
    recalibrator : estimator, default=None
        A recalibrator of two classes, copied for each problem. None stands for
        :class:`SigmoidRecalibrator`.

    multi_class : "classwise" or Lens, default="classwise"
        The binary problems: :class:`~skcalib.lenses.Ordinal`, for cumulative probabilities;
        :class:`~skcalib.lenses.Multilabel`, with labels and probabilities as matrices (n_samples,
        n_labels); each class against the rest; or a lens of your own with a method `combine`. Two
        classes are a single problem.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `X`. By default the sorted labels in `y`. One
        column needs them where labels are names, such as "yes" and "no", and the event is the last.

    Attributes
    ----------
    recalibrators_ : list of estimators
        The fitted recalibrator of each problem.

    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of the result; of several labels, their names.

    n_features_in_ : int
        Number of columns of `X`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`.

    See Also
    --------
    SigmoidRecalibrator : The default map.

    Notes
    -----
    Recalibrated cumulative probabilities may cross. They are then sorted, which brings them no
    farther from the true ones [1]_; their differences are the probabilities of the classes. With
    "classwise", rows are divided by their sums. With `Multilabel`, `predict` says which labels have
    a probability above 1/2. The cost is that of the recalibrator times the number of problems.

    References
    ----------
    .. [1] Chernozhukov, Fernández-Val and Galichon (2010). Quantile and probability curves without
       crossing. Econometrica. :doi:`10.3982/ECTA7880`

    Examples
    --------
    >>> from skcalib.lenses import Ordinal
    >>> from skcalib.recalibration import LensRecalibrator
    >>> proba = [[0.75, 0.25, 0.0], [0.0, 0.5, 0.5], [0.25, 0.5, 0.25], [0.5, 0.5, 0.0]]
    >>> recalibrator = LensRecalibrator(multi_class=Ordinal()).fit(proba, [1, 3, 2, 1])
    >>> recalibrator.predict_proba([[0.25, 0.5, 0.25]]).round(2)
    array([[0.23, 0.53, 0.24]])
    """

    _parameter_constraints = {"recalibrator": [HasMethods(["fit", "predict_proba"]), None]}

    recalibrator: Estimator | None = None
    _: KW_ONLY
    multi_class: Literal["classwise"] | Lens = "classwise"

    def _fit(self, data: ClassData) -> None:
        lens = _get_lens(self.multi_class)
        recalibrator = SigmoidRecalibrator() if self.recalibrator is None else self.recalibrator
        self._is_identity = lens._is_identity(data)
        problems = [data]
        if not self._is_identity:
            check_combines(lens, self.multi_class)
            problems = [problem for *_, problem in data.iter_problems(lens)]
            _check_all_rows(problems, data, self.multi_class)
        self.recalibrators_ = [to_fit_data(each).fit_clone(recalibrator) for each in problems]
        self._is_smooth = all(map(is_smooth, self.recalibrators_))

    def _map(self, proba: np.ndarray) -> np.ndarray:
        if self._is_identity:
            return self.recalibrators_[0].predict_proba(proba)
        lens, n = _get_lens(self.multi_class), len(proba)
        is_matrix = lens.needs_indicator
        label = np.zeros(proba.shape if is_matrix else n, dtype=np.int32)  # the maps read none
        make: Any = MultilabelData if is_matrix else ClassData
        data = make(proba, label, self.classes_, weight=np.broadcast_to(1 / n, n))
        problems = (problem for *_, problem in data.iter_problems(lens))
        pairs = zip(self.recalibrators_, problems, strict=True)
        columns = [
            recalibrator.predict_proba(problem.proba)[:, 1] for recalibrator, problem in pairs
        ]
        return lens._combine(np.column_stack(columns), self.classes_)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class of the largest calibrated probability; of several labels, those above 1/2.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels; an indicator matrix with `Multilabel`.
        """
        if not getattr(self.multi_class, "needs_indicator", False):
            return super().predict(X)
        return (self.predict_proba(X) > 0.5).astype(int)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Minus the log loss of the calibrated probabilities; of several labels, their mean.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.

        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        score : float
            At most 0, which is best.
        """
        if not getattr(self.multi_class, "needs_indicator", False):
            return super().score(X, y, sample_weight)
        proba, names = self.predict_proba(X), ("y", "X")
        data = check_predictions(
            y, proba, sample_weight, None, self.classes_, self.multi_class, names=names
        )
        losses = [
            log_loss(label, column, labels=[0, 1], sample_weight=data.weight)
            for label, column in zip(data.label.T, data.proba.T, strict=True)
        ]
        return -float(np.mean(losses))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = getattr(self.multi_class, "needs_indicator", False)
        return tags


def check_combines(lens: Any, multi_class: Any) -> None:
    """Refuse lenses that do not say all of the probabilities."""
    if lens._combine is None:
        raise ValueError(
            "multi_class must be a lens whose problems determine the probabilities of all classes: "
            "'classwise', Ordinal(), Multilabel(), or your own with a method combine; found "
            f"{multi_class!r}. Choose one of these."
        )
