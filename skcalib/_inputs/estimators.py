"""The input of estimators whose features are probabilities: at `fit`, and afterwards."""

from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from .._numerics.array_api import Array
from .._numerics.logits import log_softmax
from .checks import check_column_order, check_predictions
from .predictions import Predictions
from .probabilities import check_logits, check_probabilities
from .scikit_learn import check_feature_names
from .warnings import warn


def check_fit_input(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Predictions:
    """`Predictions` from the arguments of `fit`; sets what scikit-learn's estimators know of X."""
    predictions = check_predictions(
        y,
        X,
        sample_weight=sample_weight,
        labels=estimator.labels,
        names=("y", "X"),
        as_logits=estimator._takes_logits,
        in_place=estimator._fits_in_place,
    )
    if np.shape(y)[1:] == (1,):
        warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel().",
            DataConversionWarning,
        )
    check_feature_names(estimator, X, reset=True)
    estimator.n_features_in_ = int(np.prod(np.shape(X)[1:]))
    return predictions


def check_predict_input(estimator: Any, X: Any) -> Array:
    """Probabilities of the classes seen at `fit`: (n,) for two of them, else (n, K).

    Of an estimator that takes logits, log-probabilities (n, K).
    """
    check_is_fitted(estimator)
    check_feature_names(estimator, X, reset=False)
    in_place = estimator._maps_in_place
    if estimator._takes_logits:
        kind, proba = "logits", log_softmax(check_logits(X, name="X", in_place=in_place))
    else:
        kind = "probabilities"
        proba = check_probabilities(X, name="X", in_place=in_place, keep_single=in_place)
    n_classes = len(estimator.classes_)
    n_columns = 2 if proba.ndim == 1 else proba.shape[1]
    if n_columns != n_classes:
        raise ValueError(
            f"X must hold the {kind} of the {n_classes} classes seen at fit; found "
            f"{n_columns} columns (one column stands for two classes). Pass one column for each "
            "class."
        )
    check_column_order(X, estimator.classes_, name="X")
    return proba[:, 1] if kind == "probabilities" and proba.shape[1:] == (2,) else proba
