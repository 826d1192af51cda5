"""The documentation site: `make docs` builds it from the pages, the notebooks and the docstrings, for reading offline.

The source folder is the root of the repository, so that a link between two pages is the same here and where the files
lie. The reference is written anew from what the packages list in their `__init__.pyi`.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # a notebook's kernel warns of frozen modules otherwise

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

from reference_pages import name_the_module, show_ranges, write_reference  # noqa: E402
from sphinx.util.fileutil import copy_asset  # noqa: E402

import marketsched  # noqa: E402

project = "marketsched"
author = "marketsched developers"
copyright = "marketsched developers"
version = release = marketsched.__version__
language = "en"

root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/reference/**",
    "examples/README.md",
    "examples/*/README.md",
    "examples/*/solutions.md",
    "examples/*/notebook.ipynb",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "build", "dist", "tests", "**/.*", "examples/*/executed.ipynb", "node_modules"]

extensions = [
    "myst_nb",  # pages in Markdown, whose code is run when the site is built, and notebooks as they are stored
    "numpydoc",  # docstrings with Parameters, Returns, Raises
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]

# -- pages
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = [
    "myst.header",  # a page may begin below the first level
    "config.cache",  # functions in this file
    "ref.citation",  # literature that only modules cite
]

# -- notebooks
nb_execution_mode = "cache" if os.environ.get("MARKETSCHED_DOCS_NOTEBOOKS", "1") != "0" else "off"
nb_execution_excludepatterns = ["examples/*/notebook.ipynb"]  # stored with their outputs, which tests hold to a run
nb_execution_cache_path = str(ROOT / "build" / "notebooks")  # run again only if changed
nb_execution_timeout = 600  # seconds a cell
nb_execution_raise_on_error = True
nb_merge_streams = True

# -- docstrings
default_role = "autolink"  # `Name` links where it can
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # Parameters say it
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
write_reference(ROOT, DOCS / "reference")

# -- the look
templates_path = [str(DOCS / "_templates")]  # absolute: the lists look from the source folder, the pages from here
html_theme = "pydata_sphinx_theme"
html_title = "marketsched"
html_static_path = [str(DOCS / "_static")]
html_css_files = ["site.css"]
html_theme_options = {
    "logo": {"text": "marketsched"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "icon_links": [],
    "external_links": [],
    "use_edit_page_button": False,
}
alone = ("start", "rules", "mathematics", "related", "literature")
html_sidebars = {f"docs/{page}": [] for page in alone}  # no pages below them
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"chtml": {"mtextInheritFont": True}}


def _copy_mathjax(app, error):
    """Put the formulas' JavaScript and fonts into the site, so that it is read without a network.

    Done here and not by the package's own extension, which keeps Sphinx from reading with two processes.
    """
    if error is None and app.builder.format == "html":
        package = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
        target = Path(app.outdir) / "_static" / "mathjax"
        for part in ("tex-chtml.js", "output/chtml/fonts"):
            (target / part).parent.mkdir(parents=True, exist_ok=True)
            copy_asset(package / part, target / part if (package / part).is_dir() else (target / part).parent)


def _begin_at_the_top(app, error):
    """Write the page that a browser opens first: it leads to the landing page."""
    if error is None and app.builder.format == "html":
        text = '<!doctype html><meta charset="utf-8"><title>marketsched</title>'
        text += (
            '<meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">marketsched</a>\n'
        )
        (Path(app.outdir) / "index.html").write_text(text, encoding="utf-8")


def _notebooks_once(app, page, source):
    """Keep the README beside a notebook out of the side bar, where the notebook stands."""
    if page.startswith("examples/") and page.endswith("/README") and (ROOT / page).with_name("notebook.ipynb").exists():
        source[0] = f"---\norphan: true\n---\n\n{source[0]}"


def setup(app):
    """Connect what is done beside reading and writing pages."""
    app.connect("source-read", _notebooks_once)
    app.connect("build-finished", _begin_at_the_top)
    app.connect("build-finished", _copy_mathjax)
    app.connect("autodoc-process-docstring", show_ranges, priority=100)  # before numpydoc
    app.connect("autodoc-process-docstring", name_the_module, priority=900)  # after numpydoc
