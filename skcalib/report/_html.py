"""The page of a report: one file without anything from a network."""

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ._text import Table, class_table, measure_lines, subgroup_table

if TYPE_CHECKING:
    from ._report import CalibrationReport, ComparisonReport

# By this tag, with which the content of every page begins, a file is known as a page of ours.
_MARK = b"<main class='skcalib'>"

_STYLE = "\n" + Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def fragment(body: str) -> str:
    """The report as part of a page, for a notebook."""
    return f"<style>{_STYLE}</style>\n<div class='skcalib'>\n{body}\n</div>"


def page(heading: str, body: str) -> str:
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        "<meta name='color-scheme' content='light dark'>\n"
        f"<title>{escape(heading)}</title>\n<style>{_STYLE}body {{ margin: 0; }}\n"
        "@media screen and (prefers-color-scheme: dark) { body { background: #161616; } }\n"
        f"</style>\n</head>\n<body>\n<main class='skcalib'>\n{body}\n</main>\n</body>\n"
        "</html>\n"
    )


def render_body(report: "CalibrationReport") -> str:
    return "\n".join([_head(report), _verdict(report), _pictures(report), _tables(report)])


def body_of_several(report: "ComparisonReport", changes: list[Table]) -> str:
    """Verdicts, one figure and what changed; then the tables of each model."""
    sections = [_head(report)]
    for name, single in report.reports.items():
        sections.append(f"<h2>{escape(str(name))}</h2>\n{_verdict(single)}")
    sections.append(_pictures(report))
    sections += [f"<h2>What changed</h2>\n{_table(single)}" for single in changes]
    for name, single in report.reports.items():
        sections.append(f"<section><h1>{escape(str(name))}</h1>\n{_tables(single)}</section>")
    return "\n".join(sections)


def _head(report: "CalibrationReport | ComparisonReport") -> str:
    date = f"\n<p>{escape(report.date)}</p>" if report.date else ""
    return f"<h1>{escape(report.heading)}</h1>{date}"


def _pictures(report: "CalibrationReport | ComparisonReport") -> str:
    pictures = [
        f"<figure><figcaption>{escape(title)}</figcaption>\n{svg}</figure>"
        for title, svg in report.figures.items()
    ]
    if not pictures:
        return "<p>Without figures, as matplotlib was not installed.</p>"
    return f"<div class='pictures'>{''.join(pictures)}</div>"


def _tables(report: "CalibrationReport") -> str:
    sections = [f"<h2>Measures</h2>\n{_table(_measure_table(report))}"]
    if report.classes:
        sections.append(f"<h2>Classes</h2>\n{_table(class_table(report.classes))}")
    if report.subgroups:
        sections.append(f"<h2>Subgroups</h2>\n{_table(subgroup_table(report.subgroups))}")
    audit = Table(["what", "value"], [[name, str(value)] for name, value in report.audit.items()])
    sections.append(
        f"<h2>How this report came about</h2>\n<div class='audit'>{_table(audit, 'text')}</div>"
    )
    return "\n".join(sections)


def _verdict(report: "CalibrationReport") -> str:
    """The advice, in which findings are items of a list."""
    joined_findings = "; ".join(report.findings)
    before, _, after = (
        report.advice.partition(joined_findings) if joined_findings else (report.advice, "", "")
    )
    if not after:
        return f"<p class='verdict'>{escape(report.advice)}</p>"
    items = "".join(
        f"<li>{escape(finding[0].upper() + finding[1:])}.</li>" for finding in report.findings
    )
    before, after = escape(before.rstrip(":; ")), escape(after.lstrip(". "))
    return f"<div class='verdict'><p>{before}:</p>\n<ul>{items}</ul>\n<p>{after}</p></div>"


def _measure_table(report: "CalibrationReport") -> Table:
    head = ["measure", "estimate", "95 % interval"][: 3 if report.intervals else 2]
    lines = measure_lines(report.numbers, report.intervals)
    rows = [
        [f"{line.title} ({line.note})" if line.note else line.title, line.value.strip(), line.ends]
        for line in lines
    ]
    return Table(head, [row[: len(head)] for row in rows])


def _table(table: Table, kind: str = "number") -> str:
    names = (f"<th scope='col' class='{kind}'>{escape(cell)}</th>" for cell in table.head[1:])
    body = "".join(
        f"<tr><th scope='row'>{escape(name)}</th>"
        + "".join(f"<td class='{kind}'>{escape(cell)}</td>" for cell in cells)
        + "</tr>\n"
        for name, *cells in table.rows
    )
    note = f"\n<p>{escape(table.note)}</p>" if table.note else ""
    return (
        f"<div class='wide'><table>\n<thead><tr><th scope='col'>{escape(table.head[0])}</th>"
        f"{''.join(names)}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>{note}"
    )


def check_target(path: str, *, force: bool) -> None:
    """Refuse a path that cannot be written to, and one of a file that may be dear to somebody."""
    target = Path(path)
    if target.is_file() and not force:
        with open(target, "rb") as file:
            if _MARK not in file.read(2**16):
                raise ValueError(
                    f"{path} must not be replaced, as it exists and is not a page of a report. "
                    "Name another file, or pass --force."
                )
    is_pipe = target.exists() and not target.is_file()
    folder = Path(os.path.realpath(target)).parent
    can_hold = folder.is_dir() and os.access(folder, os.W_OK)
    if target.is_dir() or not (is_pipe or can_hold):
        raise ValueError(f"{path} must be a file in a folder that can be written to; it is not.")


def write_atomically(path: str | os.PathLike, text: str) -> None:
    """Write a text to a file of its own, which then takes the place of the path.

    So nothing that was there is lost unless all is written. Pipes and devices are written to.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        Path(path).write_text(text, encoding="utf-8")
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    temporary = target.with_name(f".skcalib-{os.getpid()}-{id(text)}")
    try:
        temporary.write_text(text, encoding="utf-8")
        if target.exists():
            temporary.chmod(target.stat().st_mode)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
