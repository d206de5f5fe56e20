r"""Calibration lenses: from all classes to the aspect of the predictions that matters.

A lens maps labels and probabilities of K classes to those of a smaller problem, whose calibration
any metric or test then measures. If the predictions are canonically calibrated, so is what is seen
through every lens; the reverse does not hold. Rows stay in their order, so weights fit both.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ._data import ClassData, check_predictions
from ._inputs.arrays import ArrayLike, format_values
from ._inputs.labels import encode_labels
from ._inputs.scikit_learn import IntegerInterval, validate_params
from ._numerics.logits import iter_row_blocks

__all__ = ["class_groups", "top_k"]

_LENS_CONSTRAINTS: dict = {
    "y_true": "no_validation",
    "y_proba": "no_validation",
    "labels": ["array-like", None],
}


@validate_params(_LENS_CONSTRAINTS | {"k": [IntegerInterval(1)]})
def top_k(
    y_true: ArrayLike, y_proba: ArrayLike, k: int, *, labels: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""The k largest probabilities in decreasing order, and the rest as "other".

    This is the view of a user who is shown the k likeliest answers: it forgets which class is
    first, second and so on. With k = 1 it is the confidence and whether the prediction was right;
    with all classes it is the sorted vector of probabilities.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1.

    k : int
        Number of probabilities to keep, at most the number of classes.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    Returns
    -------
    rank : ndarray of shape (n_samples,)
        How many classes come before the true one, from 0 if it has the largest probability to
        k − 1; k for "other". Not every rank need occur: pass ``labels=range(k + 1)`` to the
        metrics, or ``range(n_classes)`` if `k` is the number of classes.

    proba : ndarray of shape (n_samples, k + 1)
        The k largest probabilities, and the sum of the others. If `k` is the number of classes, the
        result is the same as for one less: there is no "other", and the last column is the smallest
        probability.

    See Also
    --------
    class_groups : Groups of classes as the new classes.

    Notes
    -----
    Equal probabilities keep the order of the columns. The cost is :math:`O(n K \log K)`.

    ``pos_label=0`` makes of k = 1 the "confidence" of the metrics: the positive class is then that
    the prediction was right.

    References
    ----------
    .. [1] J. Vaicenavicius, D. Widmann, C. Andersson, F. Lindsten, J. Roll and T. B. Schön (2019).
       Evaluating model calibration in classification. AISTATS 2019. :arxiv:`1902.06977`
    .. [2] D. Widmann, F. Lindsten and D. Zachariah (2019). Calibration tests in multi-class
       classification: A unifying framework. NeurIPS 2019. :arxiv:`1910.11385`

    Examples
    --------
    >>> from skcalib.lenses import top_k
    >>> y_proba = [[0.125, 0.25, 0.5, 0.125], [0.25, 0.0, 0.125, 0.625], [0.5, 0.5, 0.0, 0.0]]
    >>> rank, proba = top_k(["c", "a", "d"], y_proba, 2, labels=["a", "b", "c", "d"])
    >>> rank
    array([0, 1, 2])
    >>> proba
    array([[0.5  , 0.25 , 0.25 ],
           [0.625, 0.25 , 0.125],
           [0.5  , 0.5  , 0.   ]])

    Are the three largest probabilities calibrated, as a whole?

    >>> from skcalib.datasets import make_dirichlet_family
    >>> from skcalib.hypothesis_tests import CalibrationTest
    >>> y_true, y_proba = make_dirichlet_family(model="M3", random_state=0)
    >>> rank, proba = top_k(y_true, y_proba, 3)
    >>> CalibrationTest(n_resamples=99, random_state=0).fit(proba, rank).p_value_
    0.01
    """
    data = check_predictions(y_true, y_proba, labels=labels)
    n, n_classes = len(data.label), len(data.classes)
    _check_k(k, n_classes)
    k = min(k, n_classes - 1)
    rank, proba = np.empty(n, dtype=np.intp), np.empty((n, k + 1))
    for rows, block in _iter_row_blocks(data):
        order = np.argsort(-block, axis=1, kind="stable")
        rank[rows] = np.argmax(order == data.label[rows, None], axis=1)
        ordered = np.take_along_axis(block, order, axis=1)
        proba[rows, :k], proba[rows, k] = ordered[:, :k], ordered[:, k:].sum(axis=1)
    return np.minimum(rank, k), proba


@validate_params(_LENS_CONSTRAINTS | {"partition": [dict, list, tuple]})
def class_groups(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    partition: dict | list | tuple,
    *,
    labels: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Groups of classes as the new classes, with the sums of their probabilities.

    For decisions that do not depend on the class within a group: which of the malignant diagnoses
    it is, say, or which breed of dog.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels: strings, integers or booleans.

    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]. One-dimensional: of the positive class. Two-dimensional: one
        column for each class in the order of `labels`; rows sum to 1.

    partition : dict of lists, or list of lists
        The classes of each group, by the group's name or in the order of the groups, which are
        then called 0, 1, and so on. Every class belongs to exactly one of at least two groups.

    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`. By default the sorted labels in
        `y_true`; if it holds only one of 0, 1 and −1, or of False and True, the other of {0, 1},
        {−1, 1} or {False, True} is supplied.

    Returns
    -------
    group : ndarray of shape (n_samples,)
        Name of the true label's group. Not every group need occur: pass
        ``labels=sorted(partition)`` to the metrics, or ``labels=range(len(partition))`` if the
        groups have no names.

    proba : ndarray of shape (n_samples, n_groups)
        Probability of each group, in the order of the sorted names, as the metrics take them.

    See Also
    --------
    top_k : The largest probabilities, whatever their classes.

    Notes
    -----
    A class without a group is an error, rather than tacitly one of a group "other". Groups of one
    class each give back the labels and probabilities. The cost is :math:`O(n K G)` for G groups.

    References
    ----------
    .. [1] J. Vaicenavicius, D. Widmann, C. Andersson, F. Lindsten, J. Roll and T. B. Schön (2019).
       Evaluating model calibration in classification. AISTATS 2019. :arxiv:`1902.06977`
    .. [2] D. Widmann, F. Lindsten and D. Zachariah (2019). Calibration tests in multi-class
       classification: A unifying framework. NeurIPS 2019. :arxiv:`1910.11385`

    Examples
    --------
    >>> from skcalib.lenses import class_groups
    >>> from skcalib.metrics import smooth_calibration_error
    >>> y_true = ["cat", "truck", "dog"]
    >>> y_proba = [[0.25, 0.125, 0.375, 0.25], [0.0, 0.25, 0.25, 0.5], [0.75, 0.0, 0.25, 0.0]]
    >>> group, proba = class_groups(
    ...     y_true,
    ...     y_proba,
    ...     {"vehicle": ["car", "truck"], "animal": ["cat", "dog"]},
    ...     labels=["car", "cat", "dog", "truck"],
    ... )
    >>> group
    array(['animal', 'vehicle', 'animal'], dtype='<U7')
    >>> proba
    array([[0.5 , 0.5 ],
           [0.5 , 0.5 ],
           [0.25, 0.75]])
    >>> smooth_calibration_error(group, proba)
    0.25
    """
    data = check_predictions(y_true, y_proba, labels=labels)
    names, group_index = _check_partition(partition, data.classes)
    is_member = (group_index[:, None] == np.arange(len(names))).astype(np.float64)  # (K, G)
    proba = np.empty((len(data.label), len(names)))
    for rows, block in _iter_row_blocks(data):
        proba[rows] = block @ is_member
    return names[group_index[data.label]], np.minimum(proba, 1)


def _iter_row_blocks(data: ClassData) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of rows, and their probabilities of all classes in double precision, (b, K)."""
    proba = data.matrix if data.is_binary else data.proba
    for rows in iter_row_blocks(*proba.shape):
        yield rows, proba[rows].astype(np.float64, copy=False)


def _check_k(k: int, n_classes: int) -> None:
    """Refuse more probabilities than there are classes."""
    if k > n_classes:
        raise ValueError(
            f"k must be at most the number of classes; found k={k} and {n_classes} classes. Pass a "
            "smaller k."
        )


def _check_partition(
    partition: dict | list | tuple, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted names of the groups, and for each class the index of its group (K,)."""
    if isinstance(partition, dict):
        names, _ = encode_labels(
            list(partition), name="The names in partition", partner="partition"
        )
        groups: Any = [partition[name] for name in names.tolist()]
    else:
        names, groups = np.arange(len(partition)), partition
    class_names = classes.tolist()
    group_index = np.full(len(class_names), -1)
    for index, (name, members) in enumerate(zip(names.tolist(), groups, strict=True)):
        if isinstance(members, str | bytes) or not hasattr(members, "__iter__"):
            raise ValueError(
                f"partition must hold a list of classes for each group; found {members!r} for "
                f"group {name!r}. Write [{members!r}]."
            )
        for member in members:
            if member not in class_names:
                raise ValueError(
                    f"partition must hold only the classes {format_values(classes)}; found "
                    f"{member!r} in group {name!r}. Name all classes with labels=[...], of the "
                    "same type as the labels."
                )
            if group_index[class_names.index(member)] >= 0:
                raise ValueError(
                    f"partition must hold each class once; found {member!r} a second time, in "
                    f"group {name!r}. Remove it from one group."
                )
            group_index[class_names.index(member)] = index
    missing = classes[group_index < 0]
    if len(missing):
        raise ValueError(
            f"partition must hold every class; found no group for {format_values(missing)}. Put "
            "the rest into a group of its own."
        )
    n_filled = len(np.unique(group_index))
    if n_filled < max(2, len(names)):
        raise ValueError(
            "partition must have at least two groups, none of them empty; found "
            f"{len(names)} group(s), {n_filled} of them with classes. The probability of a single "
            "group is always 1."
        )
    return names, group_index
