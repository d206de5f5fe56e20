"""Options that belong to some problems of a generator only."""

import inspect
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any


def check_generator_options(
    generator: Callable, options: Mapping[str, tuple[str, ...]], arguments: dict[str, Any]
) -> None:
    """Refuse an option that the problem does not have; its default is no option.

    Parameters: the options of each problem, and the arguments of the generator.
    """
    problem = arguments["problem"]
    parameters, allowed = inspect.signature(generator).parameters, options[problem]
    for name in chain(*options.values()):
        if name not in allowed and arguments[name] != parameters[name].default:
            remedy = (
                f"whose options are {', '.join(allowed)}" if allowed else "which has no options"
            )
            raise ValueError(
                f"{name} must be left out for problem={problem!r}, {remedy}; found "
                f"{arguments[name]!r}. Pass it with a problem that has it."
            )
