"""Large type and full width for all demos of a notebook, for use in front of an audience."""

from __future__ import annotations

STYLE = """<style>
.jp-Notebook .jp-RenderedMarkdown { font-size: 20px; line-height: 1.5; }
.jp-Notebook .jp-RenderedMarkdown h1 { font-size: 42px; }
.jp-Notebook .jp-RenderedMarkdown h2 { font-size: 32px; }
.jp-Notebook :is(.jp-InputPrompt, .jp-OutputPrompt, .jp-OutputArea-promptOverlay) { display: none; }
.jp-Notebook .jp-Placeholder, .jp-Notebook .jp-InputArea-editor[hidden] { opacity: 0.4; }
.ma-demo, .ma-explorer { font-size: 20px !important; border: none !important; }
.ma-demo .ma-canvas svg { max-width: 100% !important; max-height: max(300px, calc(100vh - 380px)); }
.ma-explorer { --ma-scale: 1.9; }
.ma-explorer .ma-canvas { max-height: max(300px, calc(100vh - 330px)) !important; }
.ma-demo input[type="range"] { width: 260px; }
.ma-monitor svg { width: 100%; height: auto; max-height: calc(100vh - 200px); }
</style>"""


class StageStyle:
    """Rules of layout that a notebook takes over when it shows them."""

    def _repr_html_(self) -> str:
        return STYLE

    def __repr__(self) -> str:
        return "Large type for demos."


def on_stage() -> StageStyle:
    """Show this in a notebook, and all its demos are set in large type, as wide as the page."""
    return StageStyle()
