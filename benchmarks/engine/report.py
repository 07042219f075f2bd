"""The table of measured figures, with the targets beside them and a mark where a target is missed.

The one idea to know: a row is a line of `TARGETS`, so promises and printed rows cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.engine.measuring import BASELINE, COMPETITORS, Figure, Measured

MISSED, REACHED, STRETCHED = "MISSED", "must", "stretch"
OURS = "mini_autograd"
SEPARATOR = "not available yet"


COST_OF_A_SCALAR = """2 microseconds per operation; a tenth is NumPy's arithmetic, the rest are the Python frames that
record the graph and walk it back; each operation makes a node, a tensor and two tuples"""
COST_OF_A_SMALL_MATRIX = """a third is NumPy's arithmetic, as by hand; the rest are the Python frames that record
the graph and walk it back, 2 microseconds per operation as with scalars"""
COST_OF_A_LARGE_CHAIN = """both wait for memory: on an Intel machine a product of 1e6 numbers takes 0.42 ms in NumPy and
in PyTorch, and NumPy's exp and log take 1.7 times as long; only fewer passes through memory help, as with `compile`; if
new pages are slow to get, they take as long again; the column "keeping memory" shows the time without them"""
COST_OF_NEW_MEMORY = """the system gives new pages for each result of 4 MB, because freed memory goes back to it; the
column "keeping memory" shows the time without them"""
COST_OF_GELU = """about 45 passes through a block in cache, where PyTorch makes two; three fifths of them are in the
backward pass, which recomputes Phi instead of keeping it in memory"""
COST_OF_SILU = """13 passes through a block in cache, two of them exp, where PyTorch makes two; by hand the sigmoid is
kept, which costs memory and saves one exp"""
COST_OF_A_PERCEPTRON = """of 1,770 microseconds on an AMD machine 1,490 are matrix products, 80 are other arithmetic,
as in the step by hand, and 200 are Python frames, which take 120 without products between them; OpenBLAS takes 1.26
times as long as PyTorch's MKL for the products on an Intel machine; on AMD the two vary"""
COST_OF_A_TRANSFORMER = """of 95 ms on an AMD machine 58 % are Linear, whose products alone need 50 ms at that
machine's 97 GFLOPS; attention is 12 %, gelu 9, layer norm 7; each is one pass through memory in PyTorch and about
ten in NumPy; on an Intel machine OpenBLAS takes 1.17 times as long as MKL for the products of Linear"""
COST_OF_A_CNN = """a quarter is matrix products, another quarter copies windows into columns and adds columns up into
windows, a fifth is the slices of max pooling, a tenth is ReLU and biases; with two threads, PyTorch divides the images
between them, while NumPy's copies and OpenBLAS's products, which are too small to divide, use one; if new pages are
slow to get, they take more than all of this; the column "keeping memory" shows the time without them"""
COST_OF_THE_IMPORT = """57 modules; two fifths are reading and unmarshalling their code, a fifth making 170 classes,
a tenth finding the files; no module takes more than a tenth"""
COST_OF_A_GRADCHECK = """seven eighths are 200 calls of 10 microseconds each on an AMD machine: NumPy's three
operations take 2.6 of them, the Python frames that record them 5.5, moving an element and keeping the result the rest;
a tenth are the two backward passes and the comparison, once each"""


@dataclass(frozen=True)
class Row:
    """A promise about one competitor (ours, or its fast way) on one workload: at most `must`, ideally `stretch`."""

    workload: str
    what: str  # what is measured, for the reader
    must: float | None
    stretch: float | None
    must_with_two: float | None = None  # threads
    measure: str = "time"  # time, memory: ratios to torch; microseconds, bytes: per operation
    competitor: str = OURS
    cost: str = ""  # where the time goes, from profiles, for a target that has been missed
    of_hand: float | None = None  # at most this many times what the same work takes by hand: unlike a ratio to torch,
    # this does not move with the machine


TARGETS = (
    Row("W1", "999 operations on scalars", 0.45, 0.40, 0.55, cost=COST_OF_A_SCALAR, of_hand=2.5),
    Row("W2", "999 operations on 32x32", 0.70, 0.65, 0.80, cost=COST_OF_A_SMALL_MATRIX, of_hand=1.5),
    Row("W3", "10 operations with tanh, exp, log on 1e6", 0.55, 0.48, 1.0, cost=COST_OF_A_LARGE_CHAIN, of_hand=1.15),
    Row("W3", "the same, compiled", 0.45, None, 1.0, competitor="fast way"),
    Row("W3", "memory", 0.7, 0.55, measure="memory"),
    Row("W3", "memory, compiled", 0.7, 0.55, measure="memory", competitor="fast way"),
    Row("W3b", "10 multiplications and subtractions on 1e6", 1.0, 0.8, 1.6, cost=COST_OF_NEW_MEMORY, of_hand=1.2),
    Row("W3b", "the same, compiled", 1.0, 0.8, 1.6, competitor="fast way"),
    Row("W4 SGD", "a step of an MLP, SGD", 0.80, None, 1.0, cost=COST_OF_A_PERCEPTRON, of_hand=1.15),
    Row("W4 Adam", "a step of an MLP, Adam", 0.80, None, 1.0, cost=COST_OF_A_PERCEPTRON),
    Row("W5", "a step of a Transformer, Adam", 0.95, 0.88, 1.15, cost=COST_OF_A_TRANSFORMER, of_hand=1.15),
    Row("W5", "memory", 1.0, 0.8, measure="memory"),
    Row("W5 tanh", "the same with GELU by tanh", 1.0, 0.88, 1.15, cost=COST_OF_A_TRANSFORMER),
    Row("W6", "a step of a CNN, SGD", 0.85, None, 1.4, cost=COST_OF_A_CNN, of_hand=1.25),
    Row("W8", "gradcheck of a linear layer", 0.4, None, cost=COST_OF_A_GRADCHECK, of_hand=2.0),
    Row("W8 one", "gradcheck of 100 parameters, one result", 0.4, None, cost=COST_OF_A_GRADCHECK),
    Row("W8 one", "the same in one batch", None, 0.05, competitor="fast way"),
    Row("W9", "chain of 1e5, microseconds per operation", 3.0, None, measure="microseconds", cost=COST_OF_A_SCALAR),
    Row("W9", "bytes per operation", 700, 350, measure="bytes"),
    Row("W9", "time", None, None),
    Row("W9 1e6", "chain of 1e6, microseconds per operation", None, None, measure="microseconds"),
    Row("op sum", "x.sum().backward() on three numbers", 1.0, None),
    Row("op gelu", "exact GELU, 256x512", 2.0, 1.0, cost=COST_OF_GELU),
    Row("op silu", "SiLU, 256x512", 2.0, 1.0, cost=COST_OF_SILU, of_hand=1.2),
    Row("op softmax", "softmax, 256x512", 2.0, 1.0, of_hand=1.2),
    Row("op cumsum", "cumsum, 256x512", 2.0, 1.0),
    Row("op embedding", "8,192 rows of an embedding of 10,000x64", 2.0, 1.0),
    Row("op lstm", "a step of an LSTM, 64 to 128, batch 32", 2.0, 1.0),
    Row("op conv", "convolution, 16 to 16 channels, 3x3, 16 images of 28x28", 2.0, 1.0),
)


def value_of(figure: Figure | None, measure: str) -> float | None:
    """The number that a row shows."""
    if figure is None:
        return None
    if measure == "microseconds":
        return None if figure.seconds is None else 1e6 * figure.seconds
    return getattr(figure, measure)


def verdict(value: float | None, must: float | None, stretch: float | None) -> str:
    """Whether a target is reached, and which."""
    if value is None or (must is None and stretch is None):
        return ""
    if stretch is not None and value <= stretch:
        return STRETCHED
    if must is None:
        return ""
    return REACHED if value <= must else MISSED


def number(value: float | None, note: str = "") -> str:
    """The rounded value, or a few words that say why there is none."""
    if value is None:
        return reason(note)
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def reason(note: str) -> str:
    """Why a library has no figure, short enough for a column."""
    if not note:
        return "-"
    if note.startswith("ModuleNotFoundError") and "mini_autograd" not in note:
        return "not installed"
    if note.startswith("KeyError"):
        return "-"
    kind = note.split(":")[0]
    return SEPARATOR if kind in ("AttributeError", "ImportError", "TypeError", "NotImplementedError") else kind


def table(one: Measured, two: Measured) -> list[list[str]]:
    """The rows as text: targets, our figures with one and two threads, then the peers' figures with one."""
    peers = [one.name for one in COMPETITORS if one.name not in (BASELINE, OURS, "fast way")]
    lines = [["", "what", "must", "stretch", "ours", "", "ours / by hand", "must", "", "2 threads", "", *peers]]
    for row in TARGETS:
        if row.workload not in one and row.workload not in two:
            continue
        first, second = one.get(row.workload, {}), two.get(row.workload, {})
        own, own_two = first.get(row.competitor), second.get(row.competitor)
        value, value_two = value_of(own, row.measure), value_of(own_two, row.measure)
        with_two = row.measure == "time" and own_two is not None
        by_hand = first.get("by hand") if row.competitor == OURS and row.measure == "time" else None
        alike = first.get("keeping memory", own)  # what is done by hand keeps freed memory, too
        of_hand = alike.time / by_hand.time if alike and by_hand and alike.time and by_hand.time else None
        others = [first.get(name) if row.competitor == OURS else None for name in peers]
        lines.append(
            [
                row.workload,
                row.what,
                number(row.must),
                number(row.stretch),
                number(value, own.note if own else ""),
                verdict(value, row.must, row.stretch),
                number(of_hand),
                number(row.of_hand),
                verdict(of_hand, row.of_hand, None),
                number(value_two, own_two.note if own_two else "") if with_two else "",
                verdict(value_two, row.must_with_two, None) if with_two else "",
                *(number(value_of(other, row.measure), other.note if other else "") for other in others),
            ]
        )
    return lines


def import_table(figures: dict[str, Figure]) -> list[list[str]]:
    """W7: what an import costs beyond NumPy's, in milliseconds of processor time and megabytes."""
    lines = [
        [
            "W7",
            "import",
            "ms more than NumPy",
            "MB more than NumPy",
            "of torch",
            "must: 20 ms, 4 MB; stretch: 10 ms, 2 MB",
        ]
    ]
    for name, figure in figures.items():
        if figure.seconds is None or figure.bytes is None:
            lines.append(["", name, reason("ModuleNotFoundError"), "", "", ""])
            continue
        more, size = 1000 * figure.seconds, figure.bytes / 1e6
        mark = import_verdict(more, size) if name == OURS else ""
        lines.append(["", name, f"{more:.1f}", f"{size:.1f}", number(figure.time), mark])
    return lines


def import_verdict(milliseconds: float, megabytes: float) -> str:
    """The worse of the two verdicts on what the import costs beyond NumPy's."""
    verdicts = {verdict(milliseconds, 20, 10), verdict(megabytes, 4, 2)}
    return next(word for word in (MISSED, REACHED, STRETCHED) if word in verdicts)


def as_text(lines: Sequence[Sequence[str]]) -> str:
    """Columns, aligned."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def as_markdown(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table, without empty columns; missed targets are in bold type."""
    head, *rows = [[f"**{x}**" if x == MISSED else x for x in line] for line in lines]
    filled = [column for column in range(len(head)) if any(row[column] for row in rows)]
    text = [f"| {' | '.join(line[column] for column in filled)} |" for line in (head, *rows)]
    return "\n".join([text[0], "|" + " --- |" * len(filled), *text[1:]])


def read(record: dict[str, Any]) -> tuple[Measured, Measured, dict[str, Figure]]:
    """The figures with one thread, with two threads, and of imports, from a record in JSON's types."""
    tables = [
        {name: {who: Figure(**figure) for who, figure in row.items()} for name, row in record.get(count, {}).items()}
        for count in ("1", "2")
    ]
    return tables[0], tables[1], {name: Figure(**figure) for name, figure in record.get("imports", {}).items()}


def missed(one: Measured, two: Measured) -> list[str]:
    """The rows that miss their `must` target."""
    marks = {"1 thread": (one, False), "2 threads": (two, True)}
    found = []
    for row in TARGETS:
        for threads, (measured, both) in marks.items():
            if both and row.measure != "time":
                continue
            value = value_of(measured.get(row.workload, {}).get(row.competitor), row.measure)
            if verdict(value, row.must_with_two if both else row.must, None) == MISSED:
                found.append(f"{row.workload} ({row.what}, {threads})")
    return found


def missed_import(figures: dict[str, Figure]) -> list[str]:
    """W7 (the import), if it misses its `must` target."""
    return ["W7 (import)"] if figures and any(MISSED in line for line in import_table(figures)) else []


def remaining_costs(one: Measured, two: Measured, imports: dict[str, Figure]) -> list[str]:
    """For each target that is missed: where the time goes."""
    failures = missed(one, two)
    rows = [row for row in TARGETS if row.cost and any(f.startswith(f"{row.workload} ({row.what},") for f in failures)]
    costs = [(row.workload, row.cost) for row in rows] + [("W7", COST_OF_THE_IMPORT)] * bool(missed_import(imports))
    return [f"{workload}: {' '.join(cost.split())}." for workload, cost in costs]
