"""Interactive demos for notebooks. The only part of the package that uses ipywidgets, and it also works without it."""

from mini_autograd.widgets.demos.accumulation import accumulation
from mini_autograd.widgets.demos.activations import activations
from mini_autograd.widgets.demos.be_the_engine import be_the_engine
from mini_autograd.widgets.demos.break_the_engine import break_the_engine
from mini_autograd.widgets.demos.broadcast import broadcast
from mini_autograd.widgets.demos.checkpoint_planner import checkpoint_planner
from mini_autograd.widgets.demos.forward_or_reverse import forward_or_reverse
from mini_autograd.widgets.demos.lifetime import lifetime
from mini_autograd.widgets.demos.monitor import monitor
from mini_autograd.widgets.demos.nudge import nudge
from mini_autograd.widgets.demos.optimizer_paths import optimizer_paths
from mini_autograd.widgets.demos.step_size import step_size
from mini_autograd.widgets.graph_explorer import explore
from mini_autograd.widgets.stage import on_stage

__all__ = [
    "accumulation",
    "activations",
    "be_the_engine",
    "break_the_engine",
    "broadcast",
    "checkpoint_planner",
    "explore",
    "forward_or_reverse",
    "lifetime",
    "monitor",
    "nudge",
    "on_stage",
    "optimizer_paths",
    "step_size",
]
