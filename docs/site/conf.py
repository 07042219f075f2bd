"""Sphinx's settings for the website. `build.py` stages the pages and calls Sphinx."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer

from autograder.nbgrader_plugins.formulas import formula

project = html_title = "MiniTensor"
language = "en"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # lessons have headings of the third level below the title
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_favicon = "static/favicon.svg"
html_css_files = ["widgets.css", "site.css"]
html_js_files = ["widgets.js", "live.js", "evaluator.js", "game.js"]
html_copy_source = html_show_sphinx = html_show_copyright = False
html_domain_indices = False
html_math_renderer = "mathml"
html_theme_options: dict[str, Any] = {"top_of_page_buttons": []}


def inline_formula(translator: Any, node: nodes.math) -> None:
    """A formula in a sentence, without a script that other hosts would have to send."""
    translator.body.append(formula(node.astext(), "inline"))
    raise nodes.SkipNode


def block_formula(translator: Any, node: nodes.math_block) -> None:
    """A formula between paragraphs."""
    translator.body.append(f'<div class="math">{formula(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def give_captions_a_level(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Say the level of the headings among the links, which Sphinx leaves out."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Any) -> None:
    app.connect("html-page-context", give_captions_a_level, priority=900)  # after the theme
    app.add_lexer("mermaid", TextLexer)  # drawn diagrams would need a large library on each page
    app.add_html_math_renderer("mathml", (inline_formula, None), (block_formula, None))
