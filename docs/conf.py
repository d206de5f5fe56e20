"""Settings of the documentation site.

python -m sphinx -W --keep-going -b html docs docs/_build/html

The option -D plot_gallery=0 leaves the examples out, which take minutes.
"""

import importlib
import os
import re
import sys
import warnings
from functools import cache
from importlib.util import find_spec
from inspect import isfunction
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))
sys.path.append(str(DOCS.parent / "tests"))

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from figures import assert_legends_hide_no_curve, assert_texts_are_clear  # noqa: E402
from matplotlib.transforms import Bbox  # noqa: E402
from sphinx.ext.autodoc.mock import _MockObject, mock  # noqa: E402
from sphinx.util import logging  # noqa: E402
from sphinx_gallery.scrapers import matplotlib_scraper  # noqa: E402

import skcalib  # noqa: E402

logger = logging.getLogger(__name__)

project = "skcalib"
author = "The skcalib developers"
project_copyright = f"{author}, BSD 3-Clause"
release = version = skcalib.__version__

extensions = [
    "sphinx_gallery.gen_gallery",  # before autodoc, which stands something in for PyTorch
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.extlinks",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "matplotlib.sphinxext.plot_directive",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "sg_execution_times.rst"]
highlight_language = "default"

# The guides, which are also read in the repository
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "config.cache"]

# Formulas are set without a network: this one file, of MathJax 3, holds its glyphs.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax/tex-svg.js"

# Docstrings
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!skcalib).*")]  # links within the package are checked
extlinks = {
    "arxiv": ("https://arxiv.org/abs/%s", "arXiv:%s"),
    "doi": ("https://doi.org/%s", "doi:%s"),
}
# Links to the pages of other packages, where a network is there to ask for their lists.
if os.environ.get("READTHEDOCS"):
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {
    name: (f"https://{site}/", None)
    for name, site in {
        "python": "docs.python.org/3",
        "numpy": "numpy.org/doc/stable",
        "scipy": "docs.scipy.org/doc/scipy",
        "sklearn": "scikit-learn.org/stable",
        "pandas": "pandas.pydata.org/docs",
        "matplotlib": "matplotlib.org/stable",
        "joblib": "joblib.readthedocs.io/en/latest",
        "torch": "docs.pytorch.org/docs/stable",
    }.items()
}
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]
_MockObject.__or__ = _MockObject.__ror__ = lambda self, other: self  # Tensor | None
autodoc_typehints = "none"
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True


def is_own(module, class_name, method):
    """Whether it is not inherited from scikit-learn or from tuples."""
    value = getattr(getattr(importlib.import_module(module), class_name), method)
    return (getattr(value, "__module__", None) or "").startswith("skcalib")


def find_results():
    """What functions return, by the first function or class that returns it.

    These classes are attributes of their module and not in its `__all__`.
    """
    results = {}
    for room in skcalib._SUBMODULES:
        module = importlib.import_module(f"skcalib.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            makers = vars(value).values() if isinstance(value, type) else [value]
            returned = [getattr(maker, "__annotations__", {}).get("return") for maker in makers]
            returned.append(getattr(value, "__annotations__", None))  # fitted attributes
            for word in re.findall(r"\w+", str(returned)):
                result = vars(module).get(word)
                is_of_room = getattr(result, "__module__", "").startswith(module.__name__)
                if isinstance(result, type) and is_of_room and word not in module.__all__:
                    results.setdefault(f"{module.__name__}.{word}", f"{module.__name__}.{name}")
    return results


with mock(autodoc_mock_imports):
    RESULTS = find_results()


def results_of(name):
    """The classes that are shown below a function or class, with their methods."""
    for result in (result for result, maker in RESULTS.items() if maker == name):
        module, _, own = result.rpartition(".")
        members = vars(getattr(importlib.import_module(module), own)).items()
        methods = [key for key, value in members if key[0] != "_" and isfunction(value)]
        yield own, methods


autosummary_context = {"is_own": is_own, "results_of": results_of}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False


# Examples and figures
def refuse_warnings(gallery_conf, script, when):
    """Make a warning of an example an error, as in the tests."""
    warnings.simplefilter("error" if when == "before" else "default")


def save_first_panel(figure, path):
    """Save the first axes of a figure, without its legend: a tile of the gallery is small."""
    figure.canvas.draw()
    ax = ([ax for ax in figure.axes if ax.axison] or figure.axes)[0]
    parts = [ax.get_window_extent(), ax.xaxis.get_tightbbox(), ax.yaxis.get_tightbbox()]
    panel = Bbox.union([part for part in parts if part is not None]).padded(4)
    left, bottom, right, top = panel.extents.clip(0).astype(int)
    pixels = np.asarray(figure.canvas.buffer_rgba())[::-1][bottom:top, left:right]
    plt.imsave(path, pixels[::-1])


def show_readable_figures(block, block_vars, gallery_conf):
    """Show the figures of an example, whose texts and legends must be clear of each other.

    The first image is not shown: it is the tile of the example, a panel of its last figure.
    """
    images = block_vars["image_path_iterator"]
    for number in plt.get_fignums():
        figure = plt.figure(number)
        assert_texts_are_clear(figure)
        assert_legends_hide_no_curve(figure)
        save_first_panel(figure, images.paths[0] if images.paths else images.next())
    return matplotlib_scraper(block, block_vars, gallery_conf)


ORDER = (
    "what_is_wrong",
    "interval_binning",
    "measures_against_temperature",
    "binned_error_is_discontinuous",
    "which_recalibrator",
    "which_model",
    "model_comparison",
    "covariate_shift",
    "three_classes",
    "kernel_calibration_tests",
    "kernel_errors_of_many_classes",
    "is_my_forecast_calibrated",
    "where_is_my_forecast_wrong",
    "fix_my_forecast",
    "quantile_boosting",
    "decisions_that_lose_money",
    "training_towards_calibration",
    "search_for_the_weight",
)


def place_in_gallery(file):
    """Place an example in the order of questions, as the guide has it; a new one comes last."""
    name = Path(file).stem.removeprefix("plot_")
    return (*ORDER, name).index(name)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "thumbnail_size": (400, 340),
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": (),
    "show_signature": False,
    "image_scrapers": (show_readable_figures,),
    "copyfile_regex": r".*\.rst",
    "within_subsection_order": place_in_gallery,
    "remove_config_comments": True,
    "min_reported_time": 5,
    "reset_modules": ("matplotlib", refuse_warnings),
    "reset_modules_order": "both",
}
needs_torch = re.compile(r"^\s*import torch$", re.MULTILINE)
if not find_spec("torch"):
    shown_only = [
        path.stem
        for path in (DOCS.parent / "examples").glob("plot_*.py")
        if needs_torch.search(path.read_text(encoding="utf-8"))
    ]
    sphinx_gallery_conf["filename_pattern"] = rf"/plot_(?!{'|'.join(n[5:] for n in shown_only)})"
plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 150)]
plot_rcparams = {"font.size": 11, "savefig.bbox": "tight"}  # legible on a phone
plot_apply_rcparams = True

# Appearance
html_theme = "pydata_sphinx_theme"
html_title = "skcalib"
html_static_path = ["_static", str(MATHJAX)]
mathjax_path = MATHJAX.name
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
toc_object_entries_show_parents = "hide"
wide = {f"benchmarks/{page.stem}": [] for page in (DOCS / "benchmarks").glob("*.md")}  # tables
html_theme_options = {
    "logo": {"text": "skcalib"},
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"]} | wide,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {
    "getting_started": [],
    "coming_from": [],
    "coming_from_a_paper": [],
    "changelog": [],
    "contributing": [],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def adapt_guides(app, docname, source):
    """Link to the pages of examples instead of their code, and end blocks of code with code."""
    text = re.sub(r"\((?:\.\./)*examples/(plot_\w+)\.py\)", r"(/auto_examples/\1.rst)", source[0])
    source[0] = re.sub(r"\n\n```$", "\n```", text, flags=re.MULTILINE)


def join_continued_lines(app, what, name, obj, options, lines):
    """Join lines that end with a backslash, as the types of parameters do where they are long."""
    lines[:] = re.sub(r" \\\n\s*", " ", "\n".join(lines)).split("\n")


@cache
def find_public_names():
    """All public names: of modules, of what their `__all__` lists, and of what that returns."""
    modules = [f"skcalib.{name}" for name in skcalib._SUBMODULES]
    with mock(autodoc_mock_imports):
        lists = [importlib.import_module(name).__all__ for name in modules]
    members = zip(modules, lists, strict=True)
    return {*modules, *RESULTS, *(f"{name}.{member}" for name, all_ in members for member in all_)}


def check_reference(app, env):
    """Warn of public names that the reference lacks, and of others that it has."""
    objects = env.get_domain("py").objects
    public = find_public_names()
    documented = {
        name for name, entry in objects.items() if not entry.aliased and entry.objtype != "method"
    }
    for name in sorted(public - documented):
        logger.warning("not in the reference: %s", name)
    for name in sorted(documented - public):
        logger.warning("in the reference, but not public: %s", name)


# Names in code become links here, so that pages stay plain text that can be read in the repository
DOT = '<span class="o">.</span>'  # in a block of code
MODULE_DOT = '</span><span class="nn">.</span><span class="nn">'  # in the code of an example
NAME = rf'<span class="nn?">[\w.]+</span>(?:{re.escape(DOT)}<span class="n">\w+</span>)*'
ASSIGNED = r'(?!(?:<span class="w">)?\s*(?:</span>)?<span class="o">=</span>)'  # not before "="
LINK = r"<(a|h\d)\b.*?</\1>"  # or a heading, which gets none
CODE = re.compile(
    rf'{LINK}|<code.*?</code>|<span class="classifier">.*?</dt>|{NAME}{ASSIGNED}', re.DOTALL
)
DOTTED = re.compile(rf"{LINK}|{NAME}|<[^>]*>|(?<![\w./-])[a-zA-Z_]\w*(?:\.\w+)*", re.DOTALL)


@cache
def find_targets(env):
    """What describes a name, by the name with its module and, if it is the only one, without."""
    objects = env.get_domain("py").objects
    targets = {}
    for name in (name for name, entry in objects.items() if not entry.aliased):
        _, room, *members = name.split(".")
        shorts = {name, ".".join([room, *members]), ".".join(members)} if members else {name}
        for short in shorts:
            targets.setdefault(short, []).append(
                (name, objects[name].docname, objects[name].node_id)
            )
    return {short: places[0] for short, places in targets.items() if len(places) == 1}


def link_names(app, page, templatename, context, doctree):
    """Link the public names within code to the pages that describe them."""
    targets = find_targets(app.env)

    def link_name(match):
        dot = DOT if match[0][0] == "<" else "."
        words = match[0].split(dot)
        for end in range(len(words), 0, -1):
            shown = dot.join(words[:end])
            target = targets.get(re.sub("<.*?>", "", shown))
            if target and (match[1] or target[1] == page):
                break
            if target:
                name, other_page, anchor = target
                href = f"{app.builder.get_relative_uri(page, other_page)}#{anchor}"
                link = f'<a class="reference internal" href="{href}" title="{name}">{shown}</a>'
                return dot.join([link, *words[end:]])
        return match[0]

    def link_code(match):
        return match[0] if match[1] else DOTTED.sub(link_name, match[0])

    body = context.get("body", "").replace(MODULE_DOT, ".")
    context["body"] = CODE.sub(link_code, body)


def check_links(app, page, templatename, context, doctree):
    """Warn of public names within code without a link, except on the page that describes them."""
    objects = app.env.get_domain("py").objects
    elsewhere = {name for name, entry in objects.items() if entry.docname != page}
    public = find_public_names() & elsewhere
    names = {*public, *(name.split(".", 2)[-1] for name in public if name.count(".") > 1)}
    text = re.sub(LINK, "", context.get("body", ""), flags=re.DOTALL)
    in_code = re.findall(r'<code.*?</code>|<span class="classifier">.*?</dt>', text, re.DOTALL)
    in_blocks = re.findall(rf'(?<!{re.escape(DOT)})<span class="nn?">[\w.]+</span>{ASSIGNED}', text)
    for code in in_code + in_blocks:
        for word in re.findall(r"[\w.]+", re.sub("<.*?>", "", code)):
            if word in names:
                logger.warning("a public name without a link: %s", word, location=page)


def setup(app):
    app.connect("source-read", adapt_guides)
    app.connect("autodoc-process-docstring", join_continued_lines, priority=100)  # before numpydoc
    app.connect("env-check-consistency", check_reference)
    app.connect("html-page-context", link_names)
    app.connect("html-page-context", check_links, priority=600)  # after that
