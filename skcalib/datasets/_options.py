"""Options that belong to some problems of a generator only."""

import inspect
from collections.abc import Callable, Collection
from typing import Any


def check_options(
    generator: Callable, problem: str, own: Collection[str], given: dict[str, Any]
) -> None:
    """Refuse an option that the problem does not have; its default is no option."""
    parameters = inspect.signature(generator).parameters
    for name, value in given.items():
        if name not in own and value != parameters[name].default:
            known = f"whose options are {', '.join(own)}" if own else "which has no options"
            raise ValueError(
                f"{name} must be left out for problem={problem!r}, {known}; found {value!r}. Pass "
                "it with a problem that has it."
            )
