"""A real IPython shell whose displays, results and errors go to a collector instead of a front end."""

from __future__ import annotations

import builtins
import contextlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from .outputs import Collector, as_json_data

# Magics, shell commands and help anywhere; a line that calls a function by a leading slash, comma or semicolon.
IPYTHON_SYNTAX = re.compile(r"[%!?]|^[ \t]*[/,;]", re.MULTILINE)
PICTURE = re.compile(r"image/|application/pdf")
WARMING_CELLS = ("1", "1 / 0", "print('')", "display(1.5)", "def f(:")


class CollectingPublisher(DisplayPublisher):
    """`display(...)` and rich displays become display_data outputs."""

    collector: Collector

    def publish(
        self,
        data: Any,
        metadata: Any = None,
        source: Any = None,
        *,
        transient: Any = None,
        update: Any = False,
        **kwargs: Any,
    ) -> None:
        display_id = (transient or {}).get("display_id")
        if update and display_id is not None:
            for output in self.collector.outputs:
                if output.get("display_id") == display_id:
                    output.update(data=as_json_data(data), metadata=metadata or {})
            return
        output = {"output_type": "display_data", "data": as_json_data(data), "metadata": metadata or {}}
        if display_id is not None:
            output["display_id"] = display_id
        self.collector.add(output)

    def clear_output(self, wait: bool = False) -> None:
        self.collector.clear(wait)


class CollectingHook(DisplayHook):
    """The value of a cell's last expression becomes an execute_result output."""

    collector: Collector

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        if format_dict:
            count = self.prompt_count
            data = as_json_data(format_dict)
            output = {
                "output_type": "execute_result",
                "data": data,
                "metadata": md_dict or {},
                "execution_count": count,
            }
            self.collector.add(output)

    def finish_displayhook(self) -> None:
        self._is_active = False


class CollectingShell(InteractiveShell):
    """InteractiveShell that behaves like a kernel: no prompt, no history file, tracebacks as outputs, no exit."""

    collector: Collector

    def init_history(self) -> None:
        super().init_history()
        self.history_manager.enabled = False  # type: ignore[union-attr]

    def init_completer(self) -> None:
        """Nobody types here. Completion takes 20 ms to load, so it waits for a cell that configures it."""

    def run_cell(self, raw_cell: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(raw_cell, str) and "Completer" in raw_cell and not hasattr(self, "Completer"):
            super().init_completer()
        return super().run_cell(raw_cell, *args, **kwargs)

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        self.collector.add(
            {
                "output_type": "error",
                "ename": str(etype.__name__),
                "evalue": str(evalue),
                "traceback": [str(line) for line in stb],
            }
        )

    @contextlib.contextmanager
    def without_pictures(self) -> Iterator[None]:
        """While inside, outputs have no pictures: a figure is shown as text and closed, but not drawn."""
        assert self.display_formatter is not None
        makers = [m for kind, m in self.display_formatter.formatters.items() if PICTURE.match(kind) and m.enabled]
        for maker in makers:
            maker.enabled = False
        try:
            yield
        finally:
            for maker in makers:
                maker.enabled = True

    def ask_exit(self) -> None:
        pass

    def enable_gui(self, gui: Any = None) -> None:
        """There is no window system; `%matplotlib inline` asks for none."""

    def system(self, cmd: str) -> None:
        self.system_piped(cmd)


class QuickTransformer(TransformerManager):
    """IPython's transformer, but it does not split a cell into tokens if nothing in it could be IPython syntax."""

    usual: ClassVar[list[Any]] = TransformerManager().token_transformers

    def do_token_transforms(self, lines: list[str]) -> list[str]:
        untouched = self.token_transformers == self.usual
        return lines if untouched and not IPYTHON_SYNTAX.search("".join(lines)) else super().do_token_transforms(lines)


def make_shell(collector: Collector) -> CollectingShell:
    """The one shell of this process, with `get_ipython` and `display` in place, and an `input` that refuses."""
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.banner1 = ""
    shell = CollectingShell.instance(
        config=config, display_pub_class=CollectingPublisher, displayhook_class=CollectingHook
    )
    shell.input_transformer_manager = QuickTransformer()
    for part in (shell, shell.display_pub, shell.displayhook):
        part.collector = collector  # type: ignore[union-attr]
    shell.events.register("post_execute", _not_drawn_by_pyplot)
    shell.set_hook("show_in_pager", lambda *shown, **how: None, 99)  # help opens beside a notebook, not in its outputs
    builtins.input = _no_input  # type: ignore[assignment]
    sys.modules["__main__"].__dict__.pop("__file__", None)
    return shell


def _not_drawn_by_pyplot() -> None:
    """After a cell, keep pyplot from drawing its figures for windows. Pictures of them are drawn anew, if at all."""
    pylab: Any = sys.modules.get("matplotlib._pylab_helpers")
    for manager in pylab.Gcf.get_all_fig_managers() if pylab else ():
        manager.canvas.figure.stale = False


def _no_input(prompt: object = "") -> str:
    raise RuntimeError(
        "input() cannot be answered here: nobody is at the keyboard when a notebook is graded, "
        "and an input() that a test puts in its place stays in the process of the test"
    )


@contextlib.contextmanager
def _no_links_followed() -> Iterator[None]:
    """For the first traceback, `inspect` follows all links to the files of all modules. That takes 20 ms, and nothing
    here depends on it.
    """
    following, os.path.realpath = os.path.realpath, os.path.abspath  # type: ignore[assignment]
    try:
        yield
    finally:
        os.path.realpath = following


def warm_up(shell: CollectingShell) -> None:
    """Run a few cells of ours, so that IPython loads now what it needs for a first cell, result and error."""
    spaces = (shell.user_ns, dict(shell.user_ns)), (shell.user_ns_hidden, dict(shell.user_ns_hidden))
    with _no_links_followed():
        for source in WARMING_CELLS:
            shell.run_cell(source, store_history=False)
    for space, before in spaces:
        space.clear()
        space.update(before)
    shell.user_ns["_oh"].clear()
    shell.displayhook._ = shell.displayhook.__ = shell.displayhook.___ = ""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    shell.collector.start()
