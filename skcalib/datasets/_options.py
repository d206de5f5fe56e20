"""Options that belong to some problems of a generator only."""

import inspect
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any


def check_options(
    generator: Callable, options: Mapping[str, tuple[str, ...]], given: dict[str, Any]
) -> None:
    """Refuse an option that the problem does not have; its default is no option.

    Parameters: the options of each problem, and what the generator was given.
    """
    problem = given["problem"]
    parameters, own = inspect.signature(generator).parameters, options[problem]
    for name in chain(*options.values()):
        if name not in own and given[name] != parameters[name].default:
            known = f"whose options are {', '.join(own)}" if own else "which has no options"
            raise ValueError(
                f"{name} must be left out for problem={problem!r}, {known}; found "
                f"{given[name]!r}. Pass it with a problem that has it."
            )
