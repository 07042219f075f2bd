"""`python -m benchmarks.engine`: measure the engine beside its peers, and print the table with the targets.

Ratios to PyTorch in the same run: below 1 is faster, or smaller. With one thread processor time, with two wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.engine import measuring, report
from benchmarks.engine.measuring import Effort
from benchmarks.engine.workloads import JOBS
from mini_autograd import allocator as settings

QUICK = Effort(rounds=5, sample=0.03, patience=3.0)
SINGLE = ("W8", "W8 one", "W9", "W9 1e6", "op sum")  # workloads that a second thread cannot help
PACKAGES = ("numpy", "torch", "autograd", "tinygrad", "micrograd")


def arguments() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, and no chain of a million")
    parser.add_argument("--only", default="", metavar="W1,W5", help="only these workloads")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default: 1,2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--again", type=Path, metavar="FILE", help="measure nothing; show what --json wrote")
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown, for docs/benchmarks.md")
    parser.add_argument("--tune-all", action="store_true", help="let every library keep freed memory")
    return parser.parse_args()


def chosen(only: str, quick: bool) -> list[str]:
    """The workloads to run: `W4` means both of W4."""
    wanted = [name.strip().lower() for name in only.split(",") if name.strip()]
    names = [*JOBS, "W7"]
    if wanted:
        return [name for name in names if name.lower() in wanted or name.lower().split()[0] in wanted]
    return [name for name in names if not (quick and name == "W9 1e6")]


def surroundings() -> str:
    """The machine and the versions, which the figures depend on."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{package} not installed")
    load = f"load {os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else ""
    return (
        f"Python {platform.python_version()}, {', '.join(versions)}; {os.cpu_count()} processors, {load}; {allocator()}"
    )


def allocator() -> str:
    """Which libraries' processes keep freed memory: all, those of the engine that ask for it, or none."""
    if any(name in os.environ for name in settings.GLIBC_VARIABLES):
        return "allocator: glibc's variables are set for every library"
    in_force = settings.keep_freed_memory()
    return f"allocator: {'the columns by hand and keeping memory keep freed memory' if in_force else 'system default'}"


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure everything. Returns the record that `--json` writes."""
    if options.tune_all:
        os.environ |= {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
    effort = QUICK if options.quick else Effort()
    names = chosen(options.only, options.quick)
    begun, measured = surroundings(), {}
    for threads in map(int, options.threads.split(",")):
        asked = [name for name in names if name != "W7" and (threads == 1 or name not in SINGLE)]
        table = measuring.measure(asked, threads, effort, lambda message: print(message, file=sys.stderr))
        measured[str(threads)] = {w: {c: asdict(f) for c, f in row.items()} for w, row in table.items()}
    imports = measuring.measure_imports(effort) if "W7" in names else {}
    return {
        "surroundings": begun,
        "measured": measured | {"imports": {name: asdict(figure) for name, figure in imports.items()}},
    }


def main() -> int:
    """Measure, print, and return 1 if a `must` target is missed."""
    options = arguments()
    record = json.loads(options.again.read_text()) if options.again else measure(options)
    if options.json:
        options.json.write_text(json.dumps(record, indent=1))
    one, two, imports = report.read(record["measured"])
    show = report.as_markdown if options.markdown else report.as_text
    tables = [report.table(one, two)] if one or two else []
    tables += [report.import_table(imports)] if imports else []
    print(record["surroundings"], *map(show, tables), sep="\n\n")
    failures = report.missed(one, two) + report.missed_import(imports)
    print("\nmissed: " + ("; ".join(failures) or "nothing"))
    print(*report.remaining_costs(one, two, imports), sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
