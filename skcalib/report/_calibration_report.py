"""What a report on calibration holds, and how it is shown."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ._html import fragment, page


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationReport:
    """A report on calibration: ``print`` shows its text, a notebook its page.

    Parameters
    ----------
    numbers : dict of str to float
        The measures and p-values by name.

    intervals : dict of str to tuple of (float, float)
        Ends of the 95 % confidence intervals of some of these.

    findings : list of str
        What the test found to be wrong.

    advice : str
        The verdict, and what to do.

    classes : list of dict
        For more than two classes, the observed share of each, its mean prediction and its smooth
        calibration error against the rest, the worst ones first.

    subgroups : list of dict
        The smooth calibration error of each subgroup, with its interval and p-value, and the
        columns that make the subgroups.

    audit : dict of str to object
        How the report came about: versions, settings, the number of rows, and a hash of the data.

    text : str
        All of it as a text.

    draw : callable
        Makes the pictures of the page.

    See Also
    --------
    calibration_report : The function that returns it.

    Examples
    --------
    >>> from skcalib.report import calibration_report
    >>> report = calibration_report([0, 1, 1, 0], [0.1, 0.6, 0.9, 0.4], random_state=0)
    >>> report.numbers["accuracy"]
    1.0
    >>> report.to_dict()["advice"]
    'No evidence of miscalibration...
    """

    numbers: dict[str, Any]
    intervals: dict[str, tuple[float, float]]
    findings: list[str]
    advice: str
    classes: list[dict[str, Any]]
    subgroups: list[dict[str, Any]]
    audit: dict[str, Any]
    text: str
    draw: Callable[[], dict[str, str]]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    @cached_property
    def figures(self) -> dict[str, str]:
        """The pictures of the page, as SVG, by what they show; none without matplotlib."""
        return self.draw()

    def _repr_html_(self) -> str:
        return fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, and "intervals", "findings", "advice", "classes", "subgroups" and "audit".

        Returns
        -------
        report : dict
            Of numbers, strings, lists and dictionaries only.
        """
        parts = {
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
            "findings": self.findings,
            "advice": self.advice,
            "classes": self.classes,
            "subgroups": self.subgroups,
            "audit": self.audit,
        }
        return _plain(self.numbers | parts)

    def to_json(self) -> str:
        """`to_dict` as JSON; numbers that are not finite become null.

        Returns
        -------
        text : str
            A JSON object.
        """
        return json.dumps(_finite(self.to_dict()), indent=2, ensure_ascii=False)

    def to_html(self, path: str | PathLike | None = None) -> str:
        """The report as one self-contained page, which needs no network.

        Parameters
        ----------
        path : str or path-like, default=None
            Where the page is written, if anywhere.

        Returns
        -------
        html : str
            The page.
        """
        html = page(self)
        if path is not None:
            Path(path).write_text(html, encoding="utf-8")
        return html


def _plain(value: Any) -> Any:
    """Containers anew, with Python's numbers in place of NumPy's."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
