"""The door for user input: the only file that judges it.

It is also the only importer of private scikit-learn names. Phrases in the messages such as "Unknown
label type: continuous" are what scikit-learn's `check_estimator` looks for.
"""

import numbers
import reprlib
import warnings

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics._scorer import _Scorer as Scorer
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, get_tags
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
    validate_params,
)
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_feature_names, check_is_fitted
from sklearn.utils.validation import _check_method_params as check_method_params

from ._predictions import Predictions

__all__ = [
    "CANONICAL_CONSTRAINTS",
    "METRIC_CONSTRAINTS",
    "REDUCTION_CONSTRAINTS",
    "HasMethods",
    "Interval",
    "Scorer",
    "StrOptions",
    "check_binned_options",
    "check_can_be_split",
    "check_candidates",
    "check_class_kernel",
    "check_constraints",
    "check_debiased",
    "check_degrees_of_freedom",
    "check_draws",
    "check_enough_for_estimator",
    "check_enough_samples",
    "check_enough_to_resample",
    "check_finite_kernel",
    "check_fit_input",
    "check_folds",
    "check_fourier_kernel",
    "check_function_class",
    "check_groups",
    "check_kernel",
    "check_labels",
    "check_labels_of_frozen",
    "check_largest",
    "check_locations",
    "check_matplotlib_support",
    "check_method_params",
    "check_metric_values",
    "check_not_pairwise",
    "check_partition",
    "check_predict_input",
    "check_predictions",
    "check_probabilities",
    "check_random_shift",
    "check_response",
    "check_sample_weight",
    "check_scores",
    "check_semidefinite",
    "check_simplex_options",
    "check_statistic_values",
    "check_test_method",
    "check_two_classes",
    "check_two_samples",
    "check_weights_of_folds",
    "fit_context",
    "safe_split",
    "shown",
    "validate_parameter_constraints",
    "validate_params",
]

# Rows of double precision that sum to 1 miss it by less than this.
_ROUNDING = 1e-12

# Fewer samples say nothing about how the estimate varies.
_FEWEST_TO_RESAMPLE = 10

# Samples of a smaller share in the weight are left out, as their squares underflow.
_SMALLEST_SHARE = 1e-150

# What every metric takes; `check_predictions` judges the values.
METRIC_CONSTRAINTS: dict = {
    "y_true": "no_validation",
    "y_proba": "no_validation",
    "sample_weight": "no_validation",
    "pos_label": [numbers.Real, str, "boolean", None],
    "labels": ["array-like", None],
}
REDUCTION_CONSTRAINTS: dict = {
    "multi_class": [StrOptions({"confidence", "top-label", "classwise"})],
    "average": [StrOptions({"auto", "macro", "weighted"}), None],
}
# Of measures that see all classes at once, too.
CANONICAL_CONSTRAINTS: dict = REDUCTION_CONSTRAINTS | {
    "multi_class": [StrOptions({"canonical", "confidence", "top-label", "classwise"})],
}


def check_predictions(
    y_true,
    y_proba,
    *,
    sample_weight=None,
    pos_label=None,
    labels=None,
    names=("y_true", "y_proba"),
):
    """Labels, probabilities and weights as `Predictions`; rows of weight 0 are left out.

    `names` are the names of the first two arguments in error messages.
    """
    proba = check_probabilities(y_proba, name=names[1], partner=names[0], partner_values=y_true)
    observed, code = check_labels(y_true, name=names[0], partner=names[1])
    _check_same_length({names[0]: len(code), names[1]: len(proba)})
    classes = _resolve_classes(observed, proba, pos_label, labels, names)
    _check_column_names(y_proba, classes, name=names[1])
    label = _recode(observed, code, classes, name=names[0])
    positive = _positive_index(classes, pos_label)
    if proba.ndim == 2 and proba.shape[1] == 2:
        proba = proba[:, positive]
    if positive == 0:
        label, classes = 1 - label, classes[::-1]
    if sample_weight is None:
        return Predictions(proba, label, np.broadcast_to(1.0 / len(label), len(label)), classes)
    weight = check_sample_weight(sample_weight, len(label))
    share = weight / weight.sum()
    used = share > _SMALLEST_SHARE
    if not used.all():
        proba, label, share = proba[used], label[used], weight[used] / weight[used].sum()
    return Predictions(proba, label, share, classes)


def check_fit_input(estimator, X, y, sample_weight):
    """What `fit` of an estimator of probabilities starts with: `Predictions` of its `labels`."""
    if np.asarray(y).shape[1:] == (1,):
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass y.ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
    predictions = check_predictions(
        y, X, sample_weight=sample_weight, labels=estimator.labels, names=("y", "X")
    )
    _check_feature_names(estimator, X, reset=True)
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    estimator.n_features_in_ = int(np.prod(shape[1:]))
    return predictions


def check_predict_input(estimator, X):
    """Probabilities of the classes seen at `fit`: (n,) for two of them, else (n, K)."""
    check_is_fitted(estimator)
    _check_feature_names(estimator, X, reset=False)
    proba = check_probabilities(X, name="X")
    n_classes = len(estimator.classes_)
    n_columns = 2 if proba.ndim == 1 else proba.shape[1]
    if n_columns != n_classes:
        raise ValueError(
            f"X must hold the probabilities of the {n_classes} classes seen at fit; found "
            f"{n_columns} columns (one column stands for two classes). Pass one column for each "
            "class."
        )
    return proba[:, 1] if proba.ndim == 2 and n_columns == 2 else proba


def check_probabilities(y_proba, *, name="y_proba", partner="y_true", partner_values=None):
    """Probabilities as float64, `(n,)` for the positive class or `(n, K)` with K ≥ 2."""
    proba = _as_array(y_proba, name)
    if proba.dtype.kind == "O":
        proba = _floats_of_objects(proba)
    if proba.dtype.kind != "f" and proba.size > 0:
        remedy = (
            "Pass the output of predict_proba; in make_scorer set response_method='predict_proba'; "
            "convert true probabilities with .astype(float)."
        )
        if _looks_like_probabilities(partner_values):
            remedy = f"{partner} and {name} look swapped: exchange them."
        (first,) = proba.ravel()[:1].tolist()
        raise ValueError(
            f"{name} must hold probabilities as floating-point numbers; found {first!r} of type "
            f"{proba.dtype}, which is taken for a class label. {remedy}"
        )
    if proba.ndim == 2 and proba.shape[1] == 1:
        proba = proba[:, 0]
    if proba.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (n,) or (n, K); found shape {proba.shape}. Pass the "
            "probability of the positive class, or one column for each class."
        )
    if len(proba) == 0 or proba.shape[-1] == 0:
        missing = "sample" if len(proba) == 0 else "feature"
        raise ValueError(
            f"{name} must hold at least one prediction; found 0 {missing}(s) "
            f"(shape={proba.shape}) while a minimum of 1 is required. Check the filter or the "
            "split that produced it."
        )
    tolerance = np.sqrt(max(np.finfo(proba.dtype).eps, np.finfo(np.float32).eps))
    proba = proba.astype(np.float64, copy=False)
    _check_range(proba, name)
    if proba.ndim == 2:
        total = _check_row_sums(proba, tolerance, name)
        if proba.shape[1] > 2 and np.abs(total - 1).max() > _ROUNDING:
            proba = proba / total[:, None]  # predictions in single precision come like this
    return proba


def check_labels(y, *, name="y_true", partner="y_proba"):
    """The sorted distinct labels, and for each sample the index of its own among them."""
    if y is None:
        raise ValueError(
            f"{name} must hold one class label for each row of {partner}; found None: this "
            f"requires {name} to be passed, but the target {name} is None."
        )
    values, y = y, _as_array(y, name)
    if y.dtype.kind == "T" or (y.dtype.kind in "US" and isinstance(values, list | tuple)):
        y = np.array(values, dtype=object)  # NumPy would make a string of a missing value
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(
            f"{name} must be 1-D, one label for each row of {partner}; found shape {y.shape}. "
            "Turn one-hot rows into labels with .argmax(axis=1)."
        )
    if len(y) == 0:
        raise ValueError(f"{name} must hold at least one label; found 0 sample(s).")
    if y.dtype.kind == "O":
        return _encode_objects(y, name)
    if y.dtype.kind == "f":
        _check_whole(y, name, partner)
    elif y.dtype.kind not in "biuUS":
        raise ValueError(
            f"{name} must hold class labels (strings, integers or booleans); found type {y.dtype}. "
            "Convert them with .astype(str)."
        )
    if y.dtype.kind in "biuf":  # two distinct numbers are found without sorting
        low, high = y.min(), y.max()
        code = y == high
        if low != high and np.all(code | (y == low)):
            return np.array([low, high]), code.astype(np.int32)
    observed, code = np.unique(y, return_inverse=True)
    return observed, code.astype(np.int32)


def check_sample_weight(sample_weight, n):
    """Finite weights of shape (n,), none negative and not all zero."""
    weight = _as_array(sample_weight, "sample_weight")
    if weight.dtype.kind == "O":
        weight = _floats_of_objects(weight)
    if weight.dtype.kind not in "biuf":
        raise ValueError(
            f"sample_weight must hold numbers; found type {weight.dtype}. Pass one number for each "
            "sample."
        )
    weight = weight.astype(np.float64, copy=False)
    if weight.ndim != 1:
        raise ValueError(
            "sample_weight must be 1-D, one weight for each sample; found shape "
            f"{weight.shape}. Pass one column."
        )
    _check_same_length({"the predictions": n, "sample_weight": len(weight)})
    if not np.isfinite(weight).all():
        row = int(np.argmin(np.isfinite(weight)))
        raise ValueError(
            f"sample_weight must be finite; found {weight[row]} (NaN or infinity) in row {row}. "
            "Remove the sample, or give it weight 0."
        )
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(
            f"sample_weight must not be negative; found {float(weight[row])!r} in row {row}. Give "
            "a sample that should not count the weight 0."
        )
    total = weight.sum()
    if not 0 < total < np.inf:
        raise ValueError(
            f"sample_weight must have a positive, finite sum; found {float(total)!r}: all weights "
            "are zero, or their sum overflows. Give some sample a positive weight, or rescale "
            "the weights."
        )
    return weight


def check_enough_for_estimator(predictions, estimator, block_size=None):
    """All estimates but the biased one are made of pairs of different samples."""
    n = len(predictions.weight)
    if estimator != "biased" and n < 2:
        raise ValueError(
            f"estimator={estimator!r} needs at least 2 samples of positive weight; found 1. Use "
            "estimator='biased'."
        )
    if estimator == "block" and block_size is not None and n < block_size:
        raise ValueError(
            f"block_size must be at most the number of samples of positive weight; found "
            f"block_size={block_size} for {n} samples. Choose smaller blocks."
        )


def check_test_method(test, predictions, is_kernel):
    """Limit laws and bounds are known of the kernel statistic, and mostly of equal weights."""
    if not is_kernel:
        _check_no_kernel_options(test)
    if test.method in ("conditional", "consistency"):
        return
    if not is_kernel:
        raise ValueError(
            f"method={test.method!r} needs statistic='skce', whose law is known; found "
            f"statistic={test.statistic!r}. Use method='conditional', which takes any statistic."
        )
    if test.method == "distribution-free" and callable(test.kernel):
        raise ValueError(
            "method='distribution-free' needs a named kernel, which is at most 1; found a "
            f"callable, {test.kernel!r}. Use method='conditional'."
        )
    if test.method == "asymptotic" and test.estimator == "biased":
        raise ValueError(
            "method='asymptotic' needs an unbiased estimator; found estimator='biased'. Use "
            "'unbiased', or method='conditional'."
        )
    in_blocks = test.estimator in ("linear", "block")
    if not (test.method == "asymptotic" and in_blocks) and np.ptp(predictions.weight) > 0:
        raise ValueError(
            f"method={test.method!r} with estimator={test.estimator!r} needs equal weights; found "
            "a sample_weight that varies. Use method='conditional'."
        )
    n, smallest = len(predictions.weight), 4
    if test.method == "asymptotic" and in_blocks and test.block_size is not None:
        smallest = 2 * test.block_size if test.estimator == "block" else 4
    if test.method == "asymptotic" and in_blocks and n < smallest:
        raise ValueError(
            f"method='asymptotic' with estimator={test.estimator!r} needs at least two blocks, "
            f"that is {smallest} samples; found {n}. Use smaller blocks, or method='conditional'."
        )


def check_degrees_of_freedom(n_groups, ddof):
    """Of a chi-squared distribution over groups whose outcomes can vary."""
    if 0 < ddof >= n_groups:
        raise ValueError(
            f"ddof must be less than the number of groups whose outcomes can vary; found ddof="
            f"{ddof} and {n_groups} group(s). Choose more bins, if the predictions are not tied; "
            "for predictions that do not depend on the labels, ddof=0."
        )


def _check_no_kernel_options(test):
    """They would be ignored."""
    defaults = type(test)().get_params()
    for name in ("kernel", "bandwidth", "class_kernel", "estimator", "block_size"):
        value = getattr(test, name)
        if not (isinstance(value, str) and value == defaults[name]) and value is not defaults[name]:
            raise ValueError(
                f"{name} is an option of statistic='skce'; found {name}={value!r} with "
                f"statistic={test.statistic!r}. Leave it out, or pass the metric with its options "
                "(functools.partial)."
            )


def check_locations(locations, classes):
    """Test locations as probability vectors (m, K) and indices of classes (m,)."""
    if len(locations) != 2:
        raise ValueError(
            "locations must be a pair, the probability vectors and the classes; found "
            f"{len(locations)} item(s)."
        )
    proba = check_probabilities(locations[0], name="locations[0]", partner="locations[1]")
    if proba.ndim == 1 or proba.shape[1] != len(classes):
        raise ValueError(
            f"locations[0] must hold probability vectors of {len(classes)} classes; found shape "
            f"{proba.shape}. Pass one row for each location."
        )
    observed, code = check_labels(locations[1], name="locations[1]", partner="locations[0]")
    _check_same_length({"locations[0]": len(proba), "locations[1]": len(code)})
    return proba, _recode(observed, code, classes, name="locations[1]")


def check_two_samples(predictions):
    """A mean over pairs of different samples."""
    if len(predictions.weight) < 2:
        raise ValueError(
            "y_true must hold at least 2 samples of positive weight, as pairs of different samples "
            "are averaged; found 1. Collect more, or use the conditional error."
        )


def check_class_kernel(class_kernel, n_classes):
    """A matrix over the classes."""
    matrix = _as_array(class_kernel, "class_kernel")
    if matrix.dtype.kind not in "biuf" or matrix.shape != (n_classes, n_classes):
        raise ValueError(
            f"class_kernel must be a matrix of numbers with one row and one column for each of the "
            f"{n_classes} classes; found shape {matrix.shape} and type {matrix.dtype}. (With a "
            "multi_class other than 'canonical' there are two classes at a time.)"
        )
    matrix = matrix.astype(np.float64, copy=False)
    centred = matrix - matrix.mean(axis=0)
    if np.abs(centred - centred.mean(axis=1, keepdims=True)).max() <= 1e-12 * np.abs(matrix).max():
        raise ValueError(
            "class_kernel must tell classes apart; found a matrix that gives every residual the "
            "norm 0. Pass None for the identity."
        )
    return matrix


def check_simplex_options(strategy, debias, add_bin_width):
    """What needs an order of the predictions, or a theory of two classes."""
    if strategy == "quantile":
        raise ValueError(
            "strategy='quantile' needs predictions that have an order; found "
            "multi_class='canonical', whose predictions are the vectors of all classes. Pass "
            "strategy='median-variance' or 'uniform', or measure 'confidence', 'top-label' or "
            "'classwise'."
        )
    name = "debias" if debias else "add_bin_width" if add_bin_width else None
    if name:
        raise ValueError(
            f"{name}=True needs binary problems: only for them is the correction known; found "
            f"multi_class='canonical' and more than two classes. Pass {name}=False, or measure "
            "'confidence', 'top-label' or 'classwise'."
        )


def check_largest(k, n_classes):
    """No more probabilities can be the largest than there are."""
    if k > n_classes:
        raise ValueError(
            f"k must be at most the number of classes; found k={k} and {n_classes} classes. Pass a "
            "smaller k."
        )


def check_groups(groups, classes):
    """The sorted names of the groups, and for each class the index of its group (K,)."""
    if isinstance(groups, dict):
        names, _ = check_labels(list(groups), name="The names of groups", partner="groups")
        groups = [groups[name] for name in names.tolist()]
    else:
        names = np.arange(len(groups))
    known = classes.tolist()
    group_of = np.full(len(known), -1)
    for index, (name, members) in enumerate(zip(names.tolist(), groups, strict=True)):
        if isinstance(members, str | bytes) or not hasattr(members, "__iter__"):
            raise ValueError(
                f"groups must hold a list of classes for each group; found {members!r} for "
                f"group {name!r}. Write [{members!r}]."
            )
        for member in members:
            if member not in known:
                raise ValueError(
                    f"groups must hold only the classes {shown(classes)}; found {member!r} in "
                    f"group {name!r}. Name all classes with labels=[...], of the same type as "
                    "the labels."
                )
            if group_of[known.index(member)] >= 0:
                raise ValueError(
                    f"groups must hold each class once; found {member!r} a second time, in "
                    f"group {name!r}. Remove it from one group."
                )
            group_of[known.index(member)] = index
    missing = classes[group_of < 0]
    if len(missing):
        raise ValueError(
            f"groups must hold every class; found no group for {shown(missing)}. Put the rest "
            "into a group of its own."
        )
    n_filled = len(np.unique(group_of))
    if n_filled < max(2, len(names)):
        raise ValueError(
            f"groups must be at least two, and none may be empty; found {len(names)} group(s), "
            f"{n_filled} of them with classes. The probability of a single group is always 1."
        )
    return names, group_of


def check_fourier_kernel(kernel, method):
    """Random Fourier features are known of the Gaussian kernel, and none are needed of p·q."""
    if method == "fourier" and (callable(kernel) or kernel not in ("linear-rbf", "linear", "rbf")):
        raise ValueError(
            "method='fourier' needs kernel='linear-rbf', 'rbf' or 'linear'; found "
            f"kernel={kernel!r}. Use method='nystroem', which takes any kernel."
        )


def check_draws(method, n_draws):
    """Nothing is drawn for an exact value."""
    if method == "exact" and n_draws is not None:
        raise ValueError(
            f"n_draws needs a random method; found method='exact' and n_draws={n_draws}. Leave it "
            "out, or choose 'subsample', 'fourier' or 'binning'."
        )


def check_binned_options(norm, debias, add_bin_width):
    """The bias is known of the square, and the width is added to a mean absolute gap."""
    if debias and norm != "l2":
        raise ValueError(
            "debias=True needs norm='l2': only the bias of squared gaps is known; found "
            f"norm={norm!r}. Pass norm='l2', or debias=False."
        )
    if add_bin_width and norm != "l1":
        raise ValueError(
            "add_bin_width=True needs norm='l1' (and debias=False): only with the mean absolute "
            f"gap is the sum a bound on a distance; found norm={norm!r}. Pass norm='l1', or "
            "add_bin_width=False."
        )


def check_debiased(variance):
    """The bias is estimated from bins of several samples; it is NaN for those of one."""
    if np.isnan(variance).all():
        raise ValueError(
            "debias=True needs a bin in which at least 2 samples carry weight (for 'top-label' and "
            "'classwise' such a bin of each class); found none. Choose fewer bins, or debias=False."
        )


def check_not_pairwise(estimator):
    if get_tags(estimator).input_tags.pairwise:
        raise ValueError(
            f"ensemble must be False for {estimator!r}, whose X holds the distances or kernel "
            "values of all pairs of samples: the classifiers of an ensemble would each need "
            "other columns."
        )


def check_two_classes(classes):
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes; found 1 class, {shown(classes)}. There is nothing "
            "to classify."
        )


def check_enough_samples(cv, n):
    """A number of folds must not exceed the number of samples."""
    if isinstance(cv, numbers.Integral) and n < cv:
        raise ValueError(
            f"cv={cv} needs at least {cv} samples; found {n} sample(s) (n_samples={n}). Choose "
            "fewer folds, or freeze a fitted classifier (FrozenEstimator)."
        )


def check_candidates(candidates):
    """Names and recalibrators as a dictionary."""
    example = "Pass a list such as [('temperature', TemperatureRecalibrator())]."
    checked = {}
    for item in candidates:
        if not (isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str)):
            raise ValueError(
                "candidates must be pairs of a name and a recalibrator; found "
                f"{reprlib.repr(item)}. {example}"
            )
        name, recalibrator = item
        is_estimator = hasattr(recalibrator, "fit") and hasattr(recalibrator, "predict_proba")
        if isinstance(recalibrator, type) or not is_estimator:
            raise ValueError(
                "candidates must be objects with the methods fit and predict_proba; found "
                f"{reprlib.repr(recalibrator)} under the name {name!r}. {example}"
            )
        if name == "none" or name in checked:
            raise ValueError(
                f"candidates must have different names, none of them 'none', which is doing "
                f"nothing; found {name!r}{' twice' * (name in checked)}. Choose another name."
            )
        checked[name] = recalibrator
    return checked


def check_can_be_split(predictions):
    """One part to fit, one to score."""
    if len(predictions.weight) < 2:
        raise ValueError(
            "X must hold at least 2 samples of positive weight, to fit on one and score the other; "
            "found 1 sample. Choose a recalibrator yourself, or collect more."
        )


def check_random_shift(strategy, random_shift):
    """Only intervals of equal width can be shifted."""
    if random_shift and strategy != "uniform":
        raise ValueError(
            "random_shift=True needs strategy='uniform', whose intervals do not depend on the "
            f"data; found strategy={strategy!r}. Pass random_shift=False, or strategy='uniform'."
        )


def check_labels_of_frozen(observed, estimator):
    """A fitted classifier knows no further classes."""
    unknown = sorted(set(observed.tolist()) - set(estimator.classes_.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"y must hold classes of the frozen estimator, {shown(estimator.classes_)}; found "
            f"{shown(np.array(unknown))}. Name the classes as when it was fitted."
        )


def check_response(estimator, response_method, *, fitted):
    """A method that some classifiers have from the start, and some only once they are fitted."""
    if fitted and not hasattr(estimator, "classes_"):
        raise ValueError(
            f"estimator must be a classifier, with the attribute classes_ once it is fitted; found "
            f"{type(estimator).__name__}, which has none. Pass a classifier."
        )
    if hasattr(estimator, response_method):
        return
    if not fitted and hasattr(type(estimator), response_method):
        return
    other = {"predict_proba", "decision_function"}.difference([response_method]).pop()
    found, remedy = "neither that nor " + other, "Pass a classifier."
    if hasattr(estimator, other):
        found, remedy = other + " only", f"Pass response_method={other!r}."
    raise ValueError(
        f"estimator must have the method {response_method}, as response_method="
        f"{response_method!r}; found {type(estimator).__name__}, which has {found}. {remedy}"
    )


def check_scores(scores, estimator):
    """Decision scores of a fitted classifier: (n,) for the last of two classes, else (n, K)."""
    name = f"The output of {type(estimator).__name__}.decision_function"
    scores, n_classes = _as_array(scores, name), len(estimator.classes_)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers; found type {scores.dtype}.")
    is_pairwise = n_classes > 2 and _has_pairwise_scores(estimator)
    if is_pairwise or scores.shape[1:] != (() if n_classes == 2 else (n_classes,)):
        raise ValueError(
            f"{name} must have shape (n,) for two classes, and (n, K) with one score for each of "
            f"K > 2 classes; found shape {scores.shape} for {n_classes} classes"
            f"{', one score for each pair of them' * is_pairwise}. Set "
            "decision_function_shape='ovr' if the classifier has this parameter."
        )
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores).reshape(len(scores), -1).all(axis=1)))
        raise ValueError(
            f"{name} must be finite; found NaN or infinity in row {row}. Scale the features, or "
            "regularise the classifier."
        )
    return scores.astype(np.float64, copy=False)


def _has_pairwise_scores(estimator):
    """Whether the scores are a support vector machine's; of three classes there are three pairs."""
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return getattr(estimator, "decision_function_shape", None) == "ovo"


def check_folds(folds):
    """Pairs of arrays of indices, none of them empty; masks become indices."""
    if not folds:
        raise ValueError(
            "cv must yield at least one split; found none. A generator can be used only once: pass "
            "a splitter or a list."
        )
    checked = []
    for k, pair in enumerate(folds):
        train, test = (
            np.flatnonzero(rows) if rows.dtype.kind == "b" else rows
            for rows in map(np.asarray, pair)
        )
        if len(train) == 0 or len(test) == 0:
            raise ValueError(
                f"cv must put samples into every training and test set; found {len(train)} and "
                f"{len(test)} in split {k}. Choose other folds."
            )
        checked.append((train, test))
    return checked


def check_weights_of_folds(sample_weight, tests):
    """A recalibrator fitted on a fold needs a sample that counts."""
    for k, test in enumerate(tests):
        if not sample_weight[test].any():
            raise ValueError(
                "sample_weight must be positive for some sample of every test set of cv; found "
                f"zeros only in that of split {k}. Choose other folds, or ensemble=False."
            )


def check_partition(tests, n):
    """Positions of the samples 0..n−1 in the concatenated test sets, which must hold each once."""
    tests = np.concatenate(tests)
    if len(tests) != n or not np.array_equal(np.sort(tests), np.arange(n)):
        raise ValueError(
            "cv must put every sample into exactly one test set, for out-of-fold probabilities of "
            f"all; found {len(tests)} test samples, {len(np.unique(tests))} of them distinct, for "
            f"{n} samples. Choose a splitter such as KFold; a RecalibratedClassifier with "
            "ensemble=True takes any."
        )
    return np.argsort(tests)


def check_kernel(kernel, points):
    """A kernel must return a matrix; it is tried on a few points (n, K)."""
    rows, columns = points[:3], points[:2]
    values = np.asarray(kernel(rows, columns))
    if values.shape != (len(rows), len(columns)) or values.dtype.kind not in "biuf":
        raise ValueError(
            "kernel must return the values for all pairs of rows, of shape (a, b) for arrays of "
            f"shapes (a, n_classes) and (b, n_classes); found shape {values.shape} and type "
            f"{values.dtype} for a = {len(rows)} and b = {len(columns)}."
        )
    return kernel


def check_finite_kernel(sums):
    """What a kernel of the user's adds up to."""
    if not np.isfinite(sums).all():
        raise ValueError(
            "kernel must have finite values; found NaN or infinity among the pairs of samples."
        )


def check_semidefinite(matrix, name):
    """Eigenvalues and eigenvectors of a class kernel, or of a kernel's values for all pairs."""
    of_pairs = " of its values for all pairs of predictions" * (name == "kernel")
    asymmetry, largest = np.abs(matrix - matrix.T).max(), np.abs(matrix).max()
    if not asymmetry <= 1e-8 * largest:  # NaN too
        raise ValueError(
            f"{name} must be finite and symmetric; found a difference of {asymmetry:.3g} between "
            f"entries{of_pairs} that should be equal. Choose another one."
        )
    eigenvalue, vector = np.linalg.eigh(matrix)
    if eigenvalue[0] < -1e-8 * eigenvalue[-1]:  # more than rounding
        raise ValueError(
            f"{name} must be positive semi-definite; found the eigenvalue {eigenvalue[0]:.3g} (the "
            f"largest is {eigenvalue[-1]:.3g}){of_pairs}. Choose another one, computed in double "
            "precision."
        )
    return eigenvalue, vector


def check_constraints(constraints, function_class):
    """What a class of functions of the user's returned."""
    if not isinstance(constraints, list | tuple):
        raise TypeError(
            f"function_class must return a list of constraints; found {constraints!r} from "
            f"{function_class!r}. Put it into a list."
        )
    return list(constraints)


def check_function_class(function_class):
    """The type itself has the method `constraints` too, but no parameters."""
    if isinstance(function_class, type):
        name = function_class.__name__
        raise TypeError(
            f"function_class must be an instance; found the type {name} itself. Write {name}()."
        )


def check_enough_to_resample(n):
    """How an estimate varies is learnt from parts of the samples."""
    if n < _FEWEST_TO_RESAMPLE:
        raise ValueError(
            f"y_true must hold at least {_FEWEST_TO_RESAMPLE} samples of positive weight; found "
            f"{n}. So few samples say nothing about how the metric varies: collect more."
        )


def check_metric_values(values):
    """What a metric returned for several samples, (R, C)."""
    values = np.asarray(values)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"metric must return one number; found values of shape {values.shape[2:]} and type "
            f"{values.dtype}. With more than two classes choose an average; or wrap the metric in "
            "a function that returns a float."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "metric must be finite for every part of the samples; found "
            f"{np.sum(~np.isfinite(values))} of {values.size} value(s) that are not. If it fails "
            "where a class does not occur among the labels, let it take an argument `labels`, in "
            "which it gets the classes."
        )
    return values.astype(np.float64)


def check_statistic_values(values):
    """What a statistic of the user's returned for several label vectors."""
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"statistic must return one number; found values of shape {values.shape[1:]} and type "
            f"{values.dtype}. Wrap it in a function that returns a float."
        )
    return values.astype(np.float64, copy=False)


def _as_array(values, name):
    """An array of any type; what cannot become one is refused in the name of the argument."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} must not have masked values; found {np.ma.count_masked(values)}. Remove these "
            "samples."
        )
    try:
        return check_array(
            values,
            dtype=None,
            ensure_2d=False,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must be an array of one or two dimensions: {error}") from error


def _floats_of_objects(values):
    """Python objects as an array of floats, if that is what all of them are."""
    flat = values.ravel().tolist()
    if all(isinstance(value, float) for value in flat):
        return np.array(flat, dtype=np.float64).reshape(values.shape)
    return values


def _looks_like_probabilities(values):
    try:
        values = np.asarray([] if values is None else values, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    in_range = values.size > 0 and values.min() >= 0 and values.max() <= 1
    return bool(in_range and (values % 1 != 0).any())


def _check_range(proba, name):
    low, high = proba.min(), proba.max()
    if low >= 0 and high <= 1:
        return
    row = np.unravel_index(np.argmin((proba >= 0) & (proba <= 1)), proba.shape)
    if not np.isfinite(proba).all():
        row = np.unravel_index(np.argmin(np.isfinite(proba)), proba.shape)
        raise ValueError(
            f"{name} must be finite; found {proba[row]} (NaN or infinity) in row {row[0]}, and "
            f"{np.sum(~np.isfinite(proba))} such value(s) in all. Remove or impute these "
            "predictions."
        )
    raise ValueError(
        f"{name} must lie in [0, 1]; found {float(proba[row])!r} in row {row[0]}. Map scores or "
        "logits to probabilities first; clip rounding errors with np.clip(..., 0, 1)."
    )


def _check_row_sums(proba, tolerance, name):
    total = proba.sum(axis=1)
    worst = np.argmax(np.abs(total - 1))
    if abs(total[worst] - 1) > tolerance:
        raise ValueError(
            f"The rows of {name} must sum to 1 (within {tolerance:.0e}); found a sum of "
            f"{total[worst]:.10g} in row {worst}. Divide each row by its sum, or pass the columns "
            "of one-vs-rest scores one at a time."
        )
    return total


def _check_whole(y, name, partner):
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise ValueError(
            f"{name} must not hold missing values; found {y[row]} (NaN or infinity) in row {row}. "
            "Remove the samples without a label."
        )
    if (y % 1 != 0).any():
        row = int(np.argmax(y % 1 != 0))
        raise ValueError(
            f"{name} must hold class labels; found the fraction {float(y[row])!r} in row {row}, "
            f"which is a continuous value (Unknown label type: continuous). Perhaps {name} and "
            f"{partner} are swapped."
        )


def _encode_objects(y, name):
    values = y.tolist()
    kinds = {type(value) for value in values}
    if any(
        all(issubclass(kind, one) for kind in kinds) for one in (str, bytes, bool, np.bool_)
    ) or all(issubclass(kind, numbers.Integral) and kind is not bool for kind in kinds):
        observed = sorted(set(values))
        index = {value: k for k, value in enumerate(observed)}
        code = np.fromiter((index[value] for value in values), dtype=np.int32, count=len(values))
        return np.array(observed), code
    for row, value in enumerate(values):
        if not isinstance(value, str | bytes | numbers.Integral | np.bool_):
            raise ValueError(
                f"{name} must hold class labels (strings, integers or booleans) without missing "
                f"values; found {value!r} of type {type(value).__name__} in row {row} (Unknown "
                "label type). Remove the samples without a label, or convert the labels to one "
                "type."
            )
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(
        f"{name} must hold labels of one type; found a mix of {found} (Unknown label type). "
        "Convert them with .astype(str)."
    )


def _check_same_length(lengths):
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise ValueError(
            f"{' and '.join(lengths)} must have the same length; found inconsistent numbers of "
            f"samples ({found}). Pass one value of each for every sample."
        )


def _resolve_classes(observed, proba, pos_label, labels, names):
    """The classes in the order of the columns of proba."""
    n_columns = 2 if proba.ndim == 1 else proba.shape[1]
    columns = (
        f"{names[1]} is 1-D and so"
        if proba.ndim == 1
        else f"{names[1]} has {n_columns} columns and"
    )
    if labels is not None:
        classes = _as_array(labels, "labels")
        if classes.dtype.kind == "O":
            classes = np.array(classes.tolist())
        if classes.ndim != 1 or len(set(classes.tolist())) != classes.size:
            raise ValueError(
                f"labels must list each class once; found {shown(classes)}. Give the classes in "
                f"the order of the columns of {names[1]}."
            )
        if len(classes) != n_columns:
            raise ValueError(
                f"labels must name one class for each column: {columns} stands for {n_columns} "
                f"classes; found {len(classes)} labels. Give the classes in the order of the "
                "columns."
            )
        return classes
    if len(observed) == n_columns:
        return observed
    if len(observed) > n_columns:
        raise ValueError(
            f"{columns} stands for {n_columns} classes, but {names[0]} holds {len(observed)} "
            f"distinct labels: {shown(observed)}. Pass one column of probabilities for each "
            "class."
        )
    if n_columns == 2:
        if pos_label is not None and observed[0] != pos_label:
            return np.unique([observed[0], pos_label])
        if observed.dtype.kind == "b":
            return np.array([False, True])
        if observed.dtype.kind in "iuf" and observed[0] in (-1, 0, 1):
            return np.array([min(observed[0], 0), 1]).astype(observed.dtype)
        if pos_label is not None and proba.ndim == 1:
            return np.array([None, pos_label], dtype=object)
    raise ValueError(
        f"{columns} stands for {n_columns} classes, but {names[0]} holds only {len(observed)} "
        f"distinct label(s): {shown(observed)}. Name all classes with labels=[...], in the order "
        "of the columns."
    )


def _check_column_names(y_proba, classes, name):
    """The columns of a data frame may be named after the classes, but then in their order."""
    columns, classes = list(getattr(y_proba, "columns", [])), classes.tolist()
    if columns != classes and set(columns) == set(classes):
        raise ValueError(
            f"The columns of {name} must be in the order of the classes, "
            f"{shown(np.array(classes))}; found columns of these names in another order. Pass "
            f"labels=list({name}.columns), or reorder the columns."
        )


def _recode(observed, code, classes, name):
    """Indices into `observed` turned into indices into `classes`."""
    if len(observed) == len(classes) and np.array_equal(observed, classes):
        return code
    index = {value: k for k, value in enumerate(classes.tolist())}
    unknown = [value for value in observed.tolist() if value not in index]
    if unknown:
        raise ValueError(
            f"{name} must hold only the classes {shown(classes)}; found "
            f"{shown(np.array(unknown))}. Name all classes with labels=[...], of the same type "
            "as the labels."
        )
    table = np.array([index[value] for value in observed.tolist()], dtype=np.int32)
    return table[code]


def _positive_index(classes, pos_label):
    if pos_label is None:
        return 1
    if len(classes) != 2:
        raise ValueError(
            f"pos_label is for two classes; found {len(classes)} classes. Leave it out, or pass "
            "the column of that class and the labels y_true == pos_label."
        )
    if pos_label not in classes.tolist():
        raise ValueError(
            f"pos_label must be one of the classes {shown(classes)}; found {pos_label!r} "
            "(pos_label is not a valid label)."
        )
    return classes.tolist().index(pos_label)


def shown(values, limit=10):
    shown = ", ".join(repr(value) for value in values.tolist()[:limit])
    return f"[{shown}, …]" if len(values) > limit else f"[{shown}]"
