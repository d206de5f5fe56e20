"""The page of a report: one file without anything from a network."""

import os
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

from ._text import TextTable, class_tables, measure_tables, subgroup_tables

# Every page begins with this tag, by which `check_target` recognises it.
_PAGE_TAG = b"<main class='skcalib'>"

STYLE = "\n" + Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def render_page(heading: str, body: str) -> str:
    """Return the report as a page of its own."""
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        "<meta name='color-scheme' content='light dark'>\n"
        f"<title>{escape(heading)}</title>\n<style>{STYLE}body {{ margin: 0; }}\n"
        "@media screen and (prefers-color-scheme: dark) { body { background: #161616; } }\n"
        f"</style>\n</head>\n<body>\n<main class='skcalib'>\n{body}\n</main>\n</body>\n"
        "</html>\n"
    )


def render_comparison(comparison: Any, changes: list[TextTable]) -> str:
    """Return verdicts, figures and differences from the first model; then the tables of each."""
    sections, reports = [render_head(comparison.heading, comparison.date)], comparison.reports
    for name, report in reports.items():
        sections.append(
            f"<h2>{escape(str(name))}</h2>\n{render_verdict(report.advice, report.findings)}"
        )
    sections.append(render_figures(comparison.figures))
    sections += [
        f"<h2>{escape(table.head[2])} beside {escape(table.head[1])}</h2>\n{_render_table(table)}"
        for table in changes
    ]
    for name, report in reports.items():
        sections.append(f"<section><h1>{escape(str(name))}</h1>\n{render_tables(report)}</section>")
    audits = {name: report.audit for name, report in reports.items()}
    return "\n".join([*sections, render_audit(audits)])


def render_head(heading: str, date: str | None) -> str:
    return f"<h1>{escape(heading)}</h1>" + (f"\n<p>{escape(date)}</p>" if date else "")


def render_figures(figures: dict[str, str]) -> str:
    if not figures:
        return "<p>Without figures, as matplotlib was not installed.</p>"
    pictures = [
        f"<figure><figcaption>{escape(title)}</figcaption>\n{svg}</figure>"
        for title, svg in figures.items()
    ]
    return f"<div class='pictures'>{''.join(pictures)}</div>"


def render_tables(report: Any) -> str:
    """Return the tables of measures, classes and subgroups."""
    sections = [
        f"<h2>{escape(table.head[0].strip())}</h2>\n"
        + _render_table(table._replace(head=["measure", *table.head[1:]]))
        for table in measure_tables(report)
    ]
    groups = {"Classes": class_tables(report.classes)}
    groups["Subgroups"] = subgroup_tables(report.subgroups)
    for heading, tables in groups.items():
        sections += [f"<h2>{heading}</h2>"] * bool(tables) + list(map(_render_table, tables))
    return "\n".join(sections)


def render_audit(audits: dict[str, dict[str, Any]]) -> str:
    """Return one audit trail; what differs between models is said of each."""
    rows = []
    for title in next(iter(audits.values())):
        values = {name: str(audit.get(title, "")) for name, audit in audits.items()}
        if len(set(values.values())) == 1:
            rows.append([title, *set(values.values())])
        else:
            rows += [[f"{title} ({name})", value] for name, value in values.items()]
    table = _render_table(TextTable(["what", "value"], rows), "text")
    return f"<h2>How this report was made</h2>\n<div class='audit'>{table}</div>"


def render_verdict(advice: str, findings: Sequence[str]) -> str:
    """Return the advice, in which findings are items of a list."""
    sentence = "; ".join(findings)
    before, _, after = advice.partition(sentence) if sentence else (advice, "", "")
    if not after:
        return f"<p class='verdict'>{escape(advice)}</p>"
    items = "".join(f"<li>{escape(text[0].upper() + text[1:])}.</li>" for text in findings)
    before, after = escape(before.rstrip(":; ")), escape(after.lstrip(". "))
    return f"<div class='verdict'><p>{before}:</p>\n<ul>{items}</ul>\n<p>{after}</p></div>"


def _render_table(table: TextTable, kind: str = "number") -> str:
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


def check_target(path: str, *, force: bool, is_page: bool = True) -> None:
    """Refuse paths that cannot be written to, and existing files; a page may replace a page."""
    target = Path(path)
    with suppress(FileNotFoundError, NotADirectoryError):
        target.stat()  # raises if the name is too long, which `is_file` of Python 3.14 hides
    if target.is_file() and not force:
        with open(target, "rb") as file:
            may_be_replaced = is_page and _PAGE_TAG in file.read(2**16)
        if not may_be_replaced:
            reason = " and is not a page of a report" * is_page
            raise ValueError(
                f"{path} must not be replaced, as it exists{reason}. Name another file, or pass "
                "--force."
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
