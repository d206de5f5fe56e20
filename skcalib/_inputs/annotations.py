"""Types of means over classes, and of scikit-learn's classes, which have no annotations."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, Self, TypeVar, cast, overload

import numpy as np

P = ParamSpec("P")
Mean = TypeVar("Mean", covariant=True)
Each = TypeVar("Each", covariant=True)
Value = TypeVar("Value", float, np.ndarray)


class Averaged(Protocol[P, Mean, Each]):
    """A function that returns a mean over classes, or all their values with `average=None`."""

    __name__: str

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> Mean: ...

    @overload
    def __call__(self, *args: object, average: None, **options: object) -> Each: ...


def annotate_each(each: type[Each]) -> Callable[[Callable[P, Mean]], Averaged[P, Mean, Each]]:
    """Decorator that only tells type checkers what a function returns with `average=None`."""
    return lambda function: cast(Any, function)


class Estimator(Protocol):
    """An estimator of scikit-learn, of skcalib or of a user."""

    @property
    def fit(self) -> Any: ...
    @property
    def get_params(self) -> Any: ...


class Scorer(Protocol):
    """A scorer, as in scikit-learn: larger is better."""

    set_score_request: Any

    def __call__(self, *args: object, **params: object) -> float: ...


class _Splitter(Protocol):
    @property
    def get_n_splits(self) -> Any: ...


# A number of folds, a splitter, or pairs of training and test rows.
CrossValidator = int | _Splitter | Iterable[tuple[Any, Any]] | None

if TYPE_CHECKING:
    # With bases that have no annotations, any misspelt attribute or parameter would pass.

    class BaseEstimator:
        n_features_in_: int
        feature_names_in_: np.ndarray
        fit: Any
        get_params: Any
        set_fit_request: Any
        get_metadata_routing: Any
        __sklearn_tags__: Any
        _validate_params: Any
        _repr_html_inner: Any
        _repr_mimebundle_: Any

        def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...
        def set_params(self, **params: object) -> Self: ...

    class TransformerMixin:
        fit_transform: Any

        def set_output(self, *, transform: str | None = None) -> Self: ...

    class ClassifierMixin:
        score: Any
        set_score_request: Any

    class RegressorMixin(ClassifierMixin): ...

    class MetaEstimatorMixin: ...

    from pandas import DataFrame as DataFrame

    SampleAverage = Literal["mean"]  # without None, as `Averaged` has a signature of its own for it
else:
    DataFrame, SampleAverage = Any, Literal["mean"] | None
    from sklearn.base import (  # noqa: F401
        BaseEstimator,
        ClassifierMixin,
        MetaEstimatorMixin,
        RegressorMixin,
        TransformerMixin,
    )
