"""Checks what `python -m build` made: the files of both archives, and their metadata.

python .ci/check_package.py FOLDER
"""

import email
import re
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEVER = ("__pycache__", ".pyc", "_cache/", ".hypothesis/", ".venv")


def sources(folder):
    """The files of a folder of this tree, as paths from its root."""
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    names = {path.relative_to(ROOT).as_posix() for path in files}
    return {name for name in names if not any(part in name for part in NEVER)}


def problems(folder):
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
        (metadata_file,) = (name for name in in_wheel if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(metadata_file))
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}

    package = sources("skcalib")
    loose = {path.name for path in ROOT.glob("*.md")}
    loose |= {"LICENSE", "CITATION.cff", "pyproject.toml"}
    complete = package | sources("tests") | sources("examples") | sources("docs") | loose
    yield from (f"not in the wheel: {name}" for name in sorted(package - in_wheel))
    yield from (f"not in the source archive: {name}" for name in sorted(complete - in_sdist))
    yield from (
        f"a stranger in the wheel: {name}"
        for name in sorted(in_wheel - package)
        if ".dist-info/" not in name
    )
    yield from (
        f"a leftover: {name}"
        for name in sorted(in_wheel | in_sdist)
        if any(part in name for part in NEVER)
    )
    for name in ("skcalib/py.typed", "skcalib/__main__.py"):
        if name not in in_wheel:
            yield f"not in the wheel: {name}"
    if not any(name.endswith("licenses/LICENSE") for name in in_wheel):
        yield "no licence in the wheel"
    for link in re.findall(r"\]\((?!https://)([^)]*)\)", metadata.get_payload()):
        yield f"a relative link on the page of the package: {link}"
    if f"version: {metadata['Version']}\n" not in (ROOT / "CITATION.cff").read_text("utf-8"):
        yield f"CITATION.cff does not name the version {metadata['Version']}"


def main():
    found = list(problems(Path(sys.argv[1])))
    print("\n".join(found) or "the contents of both archives are as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
