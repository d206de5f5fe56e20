"""No option in vain: what nothing reads, given the other options, is refused."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from .arrays import ArrayLike, format_value

# For an option, the names of the options that each of its values reads. The key "callable" stands
# for functions; a value that is not listed reads all.
OptionsOf = dict[str, Mapping[Any, Iterable[str]]]


def select_arguments(arguments: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return those of the arguments of a function, its `locals()`, that have these names."""
    return {name: arguments[name] for name in names}


def check_options_of(
    function: Callable, options_of: OptionsOf, arguments: Mapping[str, Any]
) -> None:
    """Refuse options that the chosen values of others do not read; defaults are allowed."""
    parameters = inspect.signature(function).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    for decider, names_by_value in options_of.items():
        value = arguments[decider]
        names = set(chain(*names_by_value.values())) & defaults.keys()
        key = "callable" if callable(value) else value
        allowed = names_by_value.get(key, names) if isinstance(key, str | None) else names
        cause = f"{decider}={format_value(value)}"
        refuse_unused(arguments, defaults, sorted(names - set(allowed)), cause)


def check_edges(n_bins: ArrayLike, strategy: str) -> None:
    """Refuse a strategy that finds other edges of bins than those that were given."""
    if np.ndim(n_bins) and strategy != "uniform":
        raise ValueError(
            "strategy must be 'uniform', which keeps the edges in n_bins; found "
            f"{strategy!r}. Pass strategy='uniform', or n_bins as a number."
        )


def refuse_unused(
    options: Mapping[str, Any], defaults: Mapping[str, Any], unused: Iterable[str], cause: str
) -> None:
    """Refuse options that nothing reads, unless they have their defaults; the cause says why."""
    for name in unused:
        value = options[name]
        if getattr(value, "shape", ()) != () or value != defaults[name]:
            raise ValueError(
                f"{name} must be left out for {cause}, where it has no effect; found "
                f"{format_value(value)}. Leave it out, or choose what reads it."
            )
