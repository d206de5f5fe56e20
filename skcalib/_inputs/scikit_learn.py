"""The only importer of private scikit-learn names."""

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import _fit_context
from sklearn.metrics._scorer import _Scorer as Scorer
from sklearn.utils import _safe_indexing
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import validate_params as _validate_params
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "Scorer",
    "StrOptions",
    "cache_of",
    "check_feature_names",
    "check_matplotlib_support",
    "check_method_params",
    "constraints_of",
    "fit_context",
    "num_samples",
    "safe_split",
    "validate_parameter_constraints",
    "validate_params",
]

Function = TypeVar("Function", bound=Callable)


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Function], Function]:
    """scikit-learn's decorator of `fit`, which keeps the signature for type checkers."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


def validate_params(
    constraints: dict, *, prefer_skip_nested_validation: bool = True
) -> Callable[[Function], Function]:
    """scikit-learn's decorator of functions, which keeps the signature for type checkers."""
    return _validate_params(
        constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
    )


def cache_of(method_caller: Callable) -> dict:
    """Cache that the scorers of one evaluation share, from what scikit-learn hands to them."""
    cache = next(iter(getattr(method_caller, "args", ())), None)
    return {} if cache is None else cache


def safe_split(
    estimator: Any, X: Any, y: Any, indices: Any, train_indices: Any = None
) -> tuple[Any, Any]:
    """Rows of the data; those of kernel matrices for estimators that say that they take such."""
    if hasattr(estimator, "__sklearn_tags__"):
        return _safe_split(estimator, X, y, indices, train_indices)
    return _safe_indexing(X, indices), _safe_indexing(y, indices)  # an estimator of skpro


def constraints_of(function: Any) -> dict:
    """The constraints of the parameters of a function that `validate_params` decorates."""
    return function._skl_parameter_constraints
