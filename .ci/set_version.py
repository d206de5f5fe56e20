"""Writes a version into the package, the citation and, if it is a release, the changelog.

python .ci/set_version.py VERSION
"""

import re
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parent.parent


def replace(name, pattern, replacement):
    """Replace what a pattern finds in a file, where it must be found exactly once."""
    path = ROOT / name
    text, count = re.subn(pattern, replacement, path.read_text("utf-8"), flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"{name} has {count} lines like {pattern!r}, not 1")
    path.write_text(text, "utf-8")


def main():
    version = " ".join(sys.argv[1:])
    if not re.fullmatch(r"\d+\.\d+\.\d+(\.dev0|rc\d+)?", version):
        raise SystemExit(f"a version is like 0.1.0, 0.1.0rc1 or 0.2.0.dev0, not {version!r}")
    if f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        raise SystemExit(f"CHANGELOG.md has a section of {version} already")
    today = date.today().isoformat()
    replace("skcalib/_versions.py", r'^__version__ = ".*"$', f'__version__ = "{version}"')
    released = "" if version.endswith(".dev0") else f"\ndate-released: {today}"
    old = r"^version: .*(\ndate-released: .*)?$"
    replace("CITATION.cff", old, f"version: {version}{released}")
    if released:
        heading = f"## [Unreleased]\n\n## [{version}] - {today}"
        replace("CHANGELOG.md", r"^## \[Unreleased\]$", heading)


if __name__ == "__main__":
    main()
