"""scikit-learn's validation of parameters; the only importer of its private names."""

import numbers
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import wraps
from inspect import get_annotations, signature
from threading import current_thread, main_thread
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
)

import numpy as np
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import _fit_context, clone
from sklearn.metrics._scorer import _Scorer as Scorer
from sklearn.utils import _safe_indexing
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils._param_validation import (
    HasMethods,
    Interval as _Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
    validate_params as _validate_params,
)
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition, _safe_split
from sklearn.utils.parallel import Parallel as _Parallel, _FuncWrapper
from sklearn.utils.validation import (
    _check_feature_names as check_feature_names,
    _check_method_params as check_method_params,
    _num_samples as num_samples,
)

from .arrays import ArrayLike

# A class label, and a seed or a generator, in annotations.
Label = bool | int | float | str | bytes
RandomState = int | np.random.RandomState | None

# The annotation of `average`. Type checkers see it without None, as `Averaged` has a signature of
# its own for None.
Average = Literal["auto", "macro", "weighted"]
if not TYPE_CHECKING:
    Average |= None

Function = TypeVar("Function", bound=Callable)
Class = TypeVar("Class", bound=type)


class Interval(_Interval):
    """An interval whose ends need not be numbers of the type that is compared with them."""

    def is_satisfied_by(self, value: Any) -> bool:
        is_number = isinstance(value, np.generic) and not isinstance(value, np.bool_)
        is_huge = isinstance(value, int) and abs(value) >= 2**1023  # too large for a double
        return not is_huge and super().is_satisfied_by(value.item() if is_number else value)


class IntegerInterval(Interval):
    """An interval of integers. True and False do not count as integers, unlike in Python."""

    def __init__(self, left: int, right: int | None = None, *, closed: str = "left") -> None:
        super().__init__(numbers.Integral, left, right, closed=closed)

    def is_satisfied_by(self, value: object) -> bool:
        return not isinstance(value, bool) and super().is_satisfied_by(value)


class Count(IntegerInterval):
    """A number of bins, features or draws, which is limited by memory and time on any machine."""

    def __init__(self, least: int, most: int = 10**6) -> None:
        super().__init__(least, most, closed="both")

    def __str__(self) -> str:
        return f"an int from {self.left} to {self.right:,}, no more, as each takes memory and time"


class Bins(Count):
    """A number of bins of probabilities or levels, "auto", or the edges of bins."""

    def is_satisfied_by(self, value: object) -> bool:
        try:
            edges = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return isinstance(value, str) and value == "auto"
        if edges.ndim != 1:
            return super().is_satisfied_by(value)
        return edges.size > 0 and [*edges[[0, -1]]] == [0, 1] and np.diff(edges).min() > 0

    def __str__(self) -> str:
        return f"{super().__str__()}; 'auto'; or a list of edges of bins that increase from 0 to 1"


class LensNames(StrOptions):
    """Names of lenses, where objects are not taken."""

    def __str__(self) -> str:
        return (
            f"{super().__str__()}, the name of a lens (no object: pass the labels and "
            "probabilities of its binary problems one by one)"
        )


# Jobs of joblib; −1 stands for all cores, −2 for all but one.
N_JOBS: list = [IntegerInterval(-(2**15), 2**15), None]

# The arguments of metrics and of other functions that have the same rule in each, unless a function
# states its own; data such as y_true and sample_weight are checked where they are read.
METRIC_CONSTRAINTS: dict = {
    "pos_label": [numbers.Real, str, bytes, "boolean", None],
    "labels": ["array-like", None],
    "confidence_level": [Interval(numbers.Real, 0, 1, closed="neither")],
    "n_resamples": [Count(1, 10**9)],
    "random_state": ["random_state"],
    "n_jobs": N_JOBS,
    "metric_params": [dict, None],
    "levels": ["array-like", None],
    "n_draws": [Count(1, 10**7), None],
    "n_samples": [Count(1, 10**8)],
    "verbose": ["verbose"],
}


def get_literal_constraints(annotated: Any) -> dict[str, list]:
    """Return the rules of the arguments whose annotations list all values that they may have.

    These are choices, booleans, None, and lenses (objects with the method `reduce`). The arguments
    are those of a function, or the fields of a dataclass.
    """
    constraints = {}
    for name, kind in get_annotations(annotated).items():
        kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        rules = list(map(_make_rule, kinds))
        if all(rule is not kind for rule, kind in zip(rules, kinds, strict=True)):
            constraints[name] = rules
    return constraints


def _make_rule(kind: Any) -> Any:
    """The rule that an annotation states, or the annotation itself if it states none."""
    if get_origin(kind) is Literal:
        return StrOptions(set(get_args(kind)))
    if hasattr(kind, "reduce"):
        return HasMethods("reduce")
    return {bool: "boolean", NoneType: None}.get(kind, kind)


class CheckedParameters:
    """An estimator whose parameters obey their annotations, and `_parameter_constraints`.

    Most are dataclasses, whose fields are the parameters. A class states the rules that it adds to
    those of the class from which it is derived.
    """

    _parameter_constraints: dict = METRIC_CONSTRAINTS

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        stated, base = vars(cls).get("_parameter_constraints", {}), cast(Any, super(cls, cls))
        literal = get_literal_constraints(vars(cls).get("__init__", cls))
        cls._parameter_constraints = base._parameter_constraints | literal | stated


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def estimator_class(*, kw_only: bool = False) -> Callable[[Class], Class]:
    """Decorator that makes the fields of an estimator's class its parameters.

    The fields that a class adds come before those of its base classes.
    """

    def decorate(cls: Class) -> Class:
        init = cast(Any, dataclass(eq=False, repr=False, kw_only=kw_only)(cls)).__init__
        names = ["self", *(name for base in cls.__mro__ for name in get_annotations(base))]
        parameters = sorted(
            signature(init).parameters.values(),
            key=lambda parameter: (parameter.kind, names.index(parameter.name)),
        )
        init.__signature__ = signature(init).replace(parameters=parameters)
        return cls

    return decorate


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Function], Function]:
    """scikit-learn's decorator of `fit`; a fit that fails leaves the estimator as it was.

    Otherwise the classes of new data would stand beside parameters that were learned before.
    """

    def decorate(fit: Function) -> Function:
        checked_fit = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)(fit)

        @wraps(checked_fit)
        def fit_or_restore(estimator: object, *args: Any, **params: Any) -> Any:
            before = vars(estimator).copy()
            try:
                return checked_fit(estimator, *args, **params)
            except BaseException:
                for name in vars(estimator).keys() - before.keys():
                    delattr(estimator, name)
                vars(estimator).update(before)
                raise

        return fit_or_restore  # type: ignore[return-value]

    return decorate


def validate_params(
    constraints: dict | None = None, *, prefer_skip_nested_validation: bool = True
) -> Callable[[Function], Function]:
    """scikit-learn's decorator of functions; an argument needs a rule if none is known of it.

    Known are `METRIC_CONSTRAINTS` and what the annotation of the argument says. The decorator keeps
    the signature for type checkers.
    """

    def decorate(function: Function) -> Function:
        rules = METRIC_CONSTRAINTS | get_literal_constraints(function) | (constraints or {})
        skips = prefer_skip_nested_validation
        return _validate_params(rules, prefer_skip_nested_validation=skips)(function)

    return decorate


class Parallel(_Parallel):
    """scikit-learn's `Parallel` with a tqdm progress bar, if tqdm is installed.

    It is verbose by `verbose` or `joblib.parallel_config`. The functions that it calls are silent.
    """

    verbose: int
    _bar: Any = None

    def __init__(self, n_jobs: int | None = None, verbose: int = 0, **options: Any) -> None:
        super().__init__(n_jobs, **options)
        self.verbose = max(self.verbose, verbose)

    def __call__(self, tasks: Iterable) -> Any:
        if not self.verbose:
            return super().__call__(tasks)
        tasks = list(tasks)
        with parallel_config(verbose=0), _progress_bar(len(tasks)) as self._bar:
            self.verbose = 0 if self._bar else self.verbose
            return super().__call__(tasks)

    def print_progress(self) -> None:
        if self._bar is None:
            super().print_progress()
        else:
            self._bar.update(self.n_completed_tasks - self._bar.n)


class _Task(_FuncWrapper):
    """A function that joblib calls, with the caller's configuration of scikit-learn.

    scikit-learn also passes on the warning filters. Threads share these, and each would undo what
    another one sets. So only the main thread of a process sets them.
    """

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if current_thread() is main_thread():
            return super().__call__(*args, **kwargs)
        with config_context(**self.config):
            return self.function(*args, **kwargs)


def delay(function: Callable) -> Callable:
    """Return a function to be called by `Parallel`, as joblib's `delayed` does."""
    return lambda *args, **kwargs: (_Task(function), args, kwargs)


def _progress_bar(total: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return nullcontext()
    return tqdm(total=total, delay=1)  # seconds


def find_shared_cache(method_caller: Callable) -> dict:
    """Return the cache that scikit-learn shares among the scorers of one evaluation."""
    cache = next(iter(getattr(method_caller, "args", ())), None)
    return {} if cache is None else cache


def clone_instance(estimator: object, argument: str) -> Any:
    """Return an unfitted copy of an estimator; refuse a class."""
    if isinstance(estimator, type):
        raise InvalidParameterError(
            f"{argument} must be an object; found the class {estimator.__name__}. Pass "
            f"{estimator.__name__}()."
        )
    return clone(estimator)


def select_columns(X: ArrayLike, columns: Any, argument: str) -> Any:
    """Return columns of X by name or position, or what a function makes of X."""
    if callable(columns):
        return columns(X)
    try:
        return _safe_indexing(X, columns, axis=1)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ValueError(
            f"{argument} must name columns of X, or be a function of X; found {columns!r:.200}, "
            f"while {error} Pass names for a data frame, positions for an array."
        ) from error


def safe_split(
    estimator: object, X: ArrayLike, y: ArrayLike, indices: np.ndarray, train_indices: Any = None
) -> tuple[Any, Any]:
    """Return rows of the data; also columns of kernel matrices for estimators that take them."""
    if hasattr(estimator, "__sklearn_tags__"):
        return _safe_split(estimator, X, y, indices, train_indices)
    return _safe_indexing(X, indices), _safe_indexing(y, indices)  # an estimator of skpro


def get_constraints(function: Any) -> dict:
    """Return the constraints of the parameters of a function that `validate_params` decorates."""
    return function._skl_parameter_constraints
