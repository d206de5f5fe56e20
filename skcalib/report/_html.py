"""The page of a report: one file without anything from a network."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._text import (
    N_WORST,
    measure_lines,
    note_on_tested,
    shown_subgroups,
    title_of_classes,
    titles_of_subgroups,
)

if TYPE_CHECKING:
    from ._report import CalibrationReport

_STYLE = "\n" + Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def fragment(report: "CalibrationReport") -> str:
    """The report as part of a page, for a notebook."""
    return f"<style>{_STYLE}</style>\n<div class='skcalib'>\n{_body(report)}\n</div>"


def page(report: "CalibrationReport") -> str:
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        "<meta name='color-scheme' content='light dark'>\n"
        f"<title>{escape(_heading(report))}</title>\n<style>{_STYLE}body {{ margin: 0; }}\n"
        "@media screen and (prefers-color-scheme: dark) { body { background: #161616; } }\n"
        f"</style>\n</head>\n<body>\n<main class='skcalib'>\n{_body(report)}\n</main>\n</body>\n"
        "</html>\n"
    )


def _heading(report: "CalibrationReport") -> str:
    return report.text.split("\n", 1)[0]


def _body(report: "CalibrationReport") -> str:
    parts = [
        f"<h1>{escape(_heading(report))}</h1>",
        f"<p class='verdict'>{escape(report.advice)}</p>",
    ]
    if report.findings:
        items = "".join(f"<li>{escape(_sentence(one))}</li>" for one in report.findings)
        parts.append(f"<h2>What the test found</h2>\n<ul>{items}</ul>")
    if report.figures:
        pictures = [
            f"<figure><figcaption>{escape(title)}</figcaption>\n{svg}</figure>"
            for title, svg in report.figures.items()
        ]
        parts.append(f"<div class='pictures'>{''.join(pictures)}</div>")
    parts.append(f"<h2>Measures</h2>\n{_measure_table(report)}")
    if report.classes:
        title = title_of_classes(report.classes).capitalize()
        parts.append(f"<h2>Classes</h2>\n{_class_table(title, report.classes[:N_WORST])}")
    if report.subgroups:
        parts.append(f"<h2>Subgroups</h2>\n{_subgroup_table(report.subgroups)}")
    parts.append(f"<h2>How this report came about</h2>\n<div class='audit'>{_audit(report)}</div>")
    return "\n".join(parts)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _measure_table(report: "CalibrationReport") -> str:
    head = ("measure", "estimate", "95 % interval")[: 3 if report.intervals else 2]
    lines = measure_lines(report.numbers, report.intervals)
    rows = [[title, value.strip(), ends][: len(head)] for title, value, ends in lines]
    return _table(head, rows)


def _class_table(title: str, classes: list[dict[str, Any]]) -> str:
    head = (title, "observed share", "mean prediction", "smooth calibration error")
    names = ("observed_share", "mean_prediction", "smooth_calibration_error")
    rows = [[str(one["class"]), *(f"{one[name]:.4f}" for name in names)] for one in classes]
    return _table(head, rows)


def _subgroup_table(subgroups: list[dict[str, Any]]) -> str:
    title, measure = titles_of_subgroups(subgroups)
    head = (title, "samples", measure, "95 % interval", "p-value (adjusted)")
    rows = [
        [
            one["subgroup"],
            str(one["n_samples"]),
            f"{one['estimate']:.4f}",
            f"{one['low']:.4f} to {one['high']:.4f}" if one["low"] == one["low"] else "too few",
            f"{one['p_value']:.3g}",
        ]
        for one in shown_subgroups(subgroups)
    ]
    note = note_on_tested(subgroups)
    return _table(head, rows) + (f"\n<p>{escape(note)}</p>" if note else "")


def _table(head: tuple[str, ...], rows: list[list[str]], kind: str = "number") -> str:
    names = (f"<th scope='col' class='{kind}'>{escape(one)}</th>" for one in head[1:])
    body = "".join(
        f"<tr><th scope='row'>{escape(name)}</th>"
        + "".join(f"<td class='{kind}'>{escape(one)}</td>" for one in cells)
        + "</tr>\n"
        for name, *cells in rows
    )
    return (
        f"<div class='wide'><table>\n<thead><tr><th scope='col'>{escape(head[0])}</th>"
        f"{''.join(names)}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>"
    )


def _audit(report: "CalibrationReport") -> str:
    rows = [[name, str(one)] for name, one in report.audit.items()]
    return _table(("what", "value"), rows, kind="text")
