"""The maps of recalibrators, written down for use without Python: as SQL, and as tables."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..._inputs.annotations import Estimator
from ..._inputs.arrays import format_values
from ..._inputs.probabilities import ROW_SUM_ATOL
from ..._inputs.scikit_learn import StrOptions, validate_params
from .._base import Recalibrator
from .._classifier import RecalibratedClassifier
from .._maps import NoMapError, PerClass, state_map
from .formulas import sql_expressions
from .graphs import make_graph
from .sql import DIALECTS, float_literal, quote_name, translate


@validate_params({"dialect": [StrOptions(set(DIALECTS))]})
def export_sql(
    recalibrator: Estimator,
    *,
    columns: Sequence[str] | None = None,
    aliases: Sequence[str] | bool = False,
    dialect: Literal["standard", "sqlserver", "mysql"] = "standard",
) -> list[str]:
    """The map of a recalibrator as SQL expressions.

    Parameters
    ----------
    recalibrator : estimator
        A fitted recalibrator of class probabilities (not of logits), of this package. Or a fitted
        :class:`RecalibratedClassifier` with ``ensemble=False``, whose classifier gives the columns.

    columns : list of str, default=None
        Names of the columns that hold the predicted probabilities, in the order of the classes; for
        two classes also that of the last class alone, which is less exact near 1. By default those
        of the data frame at `fit`, or ``"proba_"`` followed by the class. They are quoted.

    aliases : bool or list of str, default=False
        Names of the results, one for each class, which ``AS`` gives to the expressions. True:
        ``"calibrated_"`` followed by the class.

    dialect : {"standard", "sqlserver", "mysql"}, default="standard"
        "standard", such as DuckDB, SQLite and PostgreSQL: the natural logarithm is ``ln``, and
        names are in double quotes. "sqlserver": ``LOG``, and names in brackets. "mysql", also for
        BigQuery and Spark: ``ln``, and names in backticks.

    Returns
    -------
    expressions : list of str
        One for each class, in the order of `classes_`. The value is the calibrated probability, or
        NULL where a predicted one is missing or outside [0, 1], or where those of all classes do
        not sum to 1 (within 1e-5).

    See Also
    --------
    export_table : The table of an interval map, to join.

    Notes
    -----
    :class:`DecisionRecalibrator`, :class:`AnyDecisionRecalibrator`, :class:`LensRecalibrator`,
    :class:`SubgroupRecalibrator`, :class:`FeatureRecalibrator` and searches have no formula.
    Formulas of :class:`PairwiseScalingRecalibrator`, of averages with it and, for more than two
    classes, of :class:`ScalingBinningRecalibrator` would be too long: :func:`export_onnx` takes
    these maps.

    Results differ from `predict_proba` by less than 1e-9, except next to cuts of an interval map in
    SQLite.

    DuckDB, PostgreSQL 15 and SQLite (3.35 or newer, with mathematical functions) are tested: check
    a few rows elsewhere. PostgreSQL raises an error where a product is too small for a double, as
    it may be for probabilities below 1e-300.

    Above a hundred classes expressions are too long to be of use. Of
    :class:`ScalingBinningRecalibrator` they hold the smooth map once for each bin.

    Examples
    --------
    >>> import sqlite3
    >>> from skcalib.recalibration import IsotonicRecalibrator, export_sql
    >>> recalibrator = IsotonicRecalibrator(strict=False)
    >>> recalibrator = recalibrator.fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    >>> _, positive = export_sql(recalibrator, columns=["score"])
    >>> database = sqlite3.connect(":memory:")
    >>> database.execute("CREATE TABLE scores (id, score)").connection.executemany(
    ...     "INSERT INTO scores VALUES (?, ?)", [(1, 0.25), (2, 0.8), (3, None)]
    ... ).execute(f"SELECT id, {positive} FROM scores").fetchall()
    [(1, 0.5), (2, 1.0), (3, None)]
    >>> database.close()
    """
    fitted = check_writable(recalibrator)
    column_names = check_columns(fitted, columns)
    names_of_results = check_aliases(aliases, fitted.classes_)
    expressions = write_expressions(fitted, [quote_name(name) for name in column_names])
    if names_of_results:
        expressions = [
            f"{expression} AS {quote_name(name)}"
            for expression, name in zip(expressions, names_of_results, strict=True)
        ]
    return [translate(expression, dialect) for expression in expressions]


def write_expressions(recalibrator: BaseEstimator, names: list[str]) -> list[str]:
    """The expressions of quoted names in standard SQL, NULL where a probability is invalid."""
    if len(recalibrator.classes_) == 2 and not recalibrator._reads_both_columns:
        names = names[-1:]
    try:
        formulas = sql_expressions(state_map(recalibrator), names)
    except NoMapError as error:
        raise ValueError(
            "recalibrator must have a map that a formula can express; found {}. {}".format(
                *error.args
            )
        ) from None
    if len(names) == 1:
        positive = f"CASE WHEN {names[-1]} BETWEEN 0e0 AND 1e0 THEN {formulas[0]} END"
        return [f"1e0 - {positive}", positive]
    conditions = [f"{name} BETWEEN 0e0 AND 1e0" for name in names]
    conditions.append(f"abs({' + '.join(names)} - 1e0) <= {float_literal(ROW_SUM_ATOL)}")
    is_valid = " AND ".join(conditions)
    return [f"CASE WHEN {is_valid} THEN {formula} END" for formula in formulas]


def export_table(recalibrator: Estimator) -> dict[str, np.ndarray]:
    """The map of an interval recalibrator as a table.

    Parameters
    ----------
    recalibrator : estimator
        A fitted :class:`IsotonicRecalibrator`, :class:`VennAbersRecalibrator` or
        :class:`IntervalBinningRecalibrator`, or an :class:`AutoRecalibrator` with
        ``ensemble=False`` that has chosen one.

    Returns
    -------
    table : dict
        A table, ready for :class:`pandas.DataFrame`. It has a row for each interval of predicted
        probabilities, from its "start" to the next one: the map is "value" + "slope" · (p −
        "start"). For two classes p is the probability of the last one. For more there are such rows
        for each "class", and the results of a sample are divided by their sum; if all are 0, the
        sample keeps its predicted probabilities.

    See Also
    --------
    export_sql : The same map as an SQL expression.

    Notes
    -----
    Other maps, and averages of several, have no table.

    The row of a prediction is the last one whose start it reaches: a lookup with sorted keys in a
    spreadsheet, an ASOF join in a database.

    Examples
    --------
    >>> from skcalib.recalibration import IntervalBinningRecalibrator, export_table
    >>> recalibrator = IntervalBinningRecalibrator("uniform", n_bins=2)
    >>> export_table(recalibrator.fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1]))["start"]
    array([0. , 0.5])
    """
    fitted = check_writable(recalibrator)
    try:
        stated = state_map(fitted)
        if not isinstance(stated, PerClass):
            raise NoMapError(stated.source)
    except NoMapError as error:
        raise ValueError(
            "recalibrator must be an interval map, IsotonicRecalibrator(), VennAbersRecalibrator() "
            "or IntervalBinningRecalibrator(), or an AutoRecalibrator(ensemble=False) that has "
            f"chosen one; found {error.args[0]}. Use export_sql, and fitted attributes for the "
            "parameters."
        ) from None
    maps = stated.pieces
    classes_of_maps = fitted.classes_[-len(maps) :]
    table = {"class": np.repeat(classes_of_maps, [len(pieces.start) for pieces in maps])}
    for name in ("start", "value", "slope"):
        table[name] = np.concatenate([getattr(pieces, name) for pieces in maps])
    return table


def export_onnx(recalibrator: Estimator) -> Any:
    """The map of a recalibrator as a model of ONNX.

    Parameters
    ----------
    recalibrator : estimator
        A fitted recalibrator of class probabilities (not of logits), of this package. Or a fitted
        :class:`RecalibratedClassifier` with ``ensemble=False``.

    Returns
    -------
    model : onnx.ModelProto
        From "proba" (n_samples, n_classes), predicted probabilities in double precision, to
        "calibrated" ones of the same shape, classes in the order of `classes_`. A row is NaN where
        a predicted one is missing or outside [0, 1], or where they do not sum to 1 (within 1e-5).

    See Also
    --------
    export_sql : The same map as SQL expressions.

    Notes
    -----
    Trees, :class:`DecisionRecalibrator`, :class:`AnyDecisionRecalibrator`,
    :class:`LensRecalibrator`, :class:`SubgroupRecalibrator`, :class:`FeatureRecalibrator` and
    searches have no model.

    Results differ from `predict_proba` by less than 1e-9 in onnxruntime, which is tested. For two
    classes the first column is read only if it told more than the last one at `fit`.

    It needs onnx, ``pip install "skcalib[onnx]"``.

    Examples
    --------
    >>> from skcalib.recalibration import SigmoidRecalibrator, export_onnx
    >>> recalibrator = SigmoidRecalibrator().fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1])
    >>> model = export_onnx(recalibrator)
    >>> [end.name for end in (*model.graph.input, *model.graph.output)]
    ['proba', 'calibrated']

    ``onnx.save(model, "map.onnx")`` writes it to a file.
    """
    fitted = check_writable(recalibrator)
    n_classes, reads_both_columns = len(fitted.classes_), fitted._reads_both_columns
    try:
        return make_graph(state_map(fitted), n_classes, reads_both_columns)
    except NoMapError as error:
        raise ValueError(
            "recalibrator must have a map that ONNX can express; found {}. {}".format(*error.args)
        ) from None


def unwrap_classifier(model: Any) -> Any:
    """The recalibrator of a RecalibratedClassifier that is one map of one classifier's output."""
    if not isinstance(model, RecalibratedClassifier):
        return model
    check_is_fitted(model)
    if len(model.estimators_) > 1:
        raise ValueError(
            "recalibrator must be one map of the probabilities of one classifier; found a "
            f"RecalibratedClassifier that averages {len(model.estimators_)} classifiers, each "
            "recalibrated. Fit it with ensemble=False."
        )
    if model.response_method != "predict_proba":
        raise ValueError(
            "recalibrator must map probabilities; found a RecalibratedClassifier with "
            f"response_method={model.response_method!r}. Fit it with 'predict_proba', or export "
            f"its recalibrator_ for the columns expit(score / {model.scales_[0]:.17g})."
        )
    return model.recalibrator_


def check_writable(recalibrator: BaseEstimator) -> Any:
    """The recalibrator of class probabilities that is passed, or that a classifier has fitted."""
    recalibrator = unwrap_classifier(recalibrator)
    if isinstance(recalibrator, Recalibrator):
        check_is_fitted(recalibrator)
        if recalibrator._expects_logits:
            raise ValueError(
                "recalibrator must be fitted on probabilities, which the exported map takes; found "
                "input_type='logits'. Fit it on scipy.special.softmax(X, axis=1), and pass these "
                "probabilities to the exported map."
            )
        if hasattr(recalibrator, "classes_"):  # it is not fitted on forecasts
            return recalibrator
    is_class = isinstance(recalibrator, type)
    description = f"the class {recalibrator.__name__}" if is_class else type(recalibrator).__name__
    raise TypeError(
        f"recalibrator must be a fitted recalibrator of class probabilities; found {description}. "
        "Pass the object itself, such as the last step of a pipeline."
    )


def check_columns(recalibrator: BaseEstimator, columns: Sequence[str] | None) -> list[str]:
    """Check the names of the columns: one for each class, or one for the last of two."""
    classes = recalibrator.classes_
    if columns is None:
        names = getattr(recalibrator, "feature_names_in_", recalibrator.get_feature_names_out())
        return names.tolist()
    expected = (
        f"{len(classes)} different names, in the order of the classes {format_values(classes)}"
    )
    if len(classes) == 2:
        expected += ", or the name of the column of the last class"
    column_names = [] if isinstance(columns, str) or not np.iterable(columns) else list(columns)
    are_names = all(isinstance(name, str) and name for name in column_names)
    if not column_names or not are_names or len(set(column_names)) < len(column_names):
        raise ValueError(
            f"columns must be a list of {expected}; found {columns!r}. Pass such names."
        )
    if len(column_names) != len(classes) and (len(classes), len(column_names)) != (2, 1):
        raise ValueError(
            f"columns must be a list of {expected}; found {len(column_names)} name(s). Pass a name "
            "for each class."
        )
    return column_names


def check_aliases(aliases: Any, classes: np.ndarray) -> list[str]:
    """Check the names of the results, and return them; none if there are no aliases."""
    if isinstance(aliases, bool):
        return [f"calibrated_{label}" for label in classes] if aliases else []
    names = [] if isinstance(aliases, str) or not np.iterable(aliases) else list(aliases)
    are_names = all(isinstance(name, str) and name for name in names)
    if not are_names or len(names) != len(classes) or len(set(names)) != len(classes):
        raise ValueError(
            f"aliases must be True, False, or a list of {len(classes)} different names, in the "
            f"order of the classes {format_values(classes)}; found {aliases!r}. Pass such names."
        )
    return names
