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

from benchmarks.engine import measuring, report
from benchmarks.engine.measuring import Effort
from benchmarks.engine.workloads import JOBS
from mini_autograd import allocator as settings

QUICK = Effort(rounds=5, sample=0.03, patience=3.0)
SINGLE = ("W8", "W9", "W9 1e6")  # workloads that a second thread cannot help
PACKAGES = ("numpy", "torch", "autograd", "tinygrad", "micrograd")


def arguments() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, and no chain of a million")
    parser.add_argument("--only", default="", metavar="W1,W5", help="these workloads only")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default: 1,2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument("--tune-all", action="store_true", help="give every library glibc's setting that ours makes")
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
    """Whether processes keep freed memory: every library's, the engine's, or none."""
    if any(name in os.environ for name in settings.GLIBC_VARIABLES):
        return "allocator: glibc's variables are set for every library"
    in_force = settings.keep_freed_memory()
    return f"allocator: {'mini_autograd keeps freed memory (glibc)' if in_force else 'the system as it is'}"


def main() -> int:
    """Measure, print, and return 1 if a floor is missed."""
    options = arguments()
    if options.tune_all:
        os.environ |= {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
    effort = QUICK if options.quick else Effort()
    names = chosen(options.only, options.quick)
    threads = [int(number) for number in options.threads.split(",")]
    measured = {
        count: measuring.measure(
            [name for name in names if name != "W7" and (count == 1 or name not in SINGLE)],
            *(count, effort, lambda message: print(message, file=sys.stderr)),
        )
        for count in threads
    }
    one, two = measured.get(1, {}), measured.get(2, {})
    tables = [report.table(one, two)] if one or two else []
    imports = measuring.measure_imports(effort) if "W7" in names else {}
    if imports:
        tables.append(report.import_table(imports))
    show = report.as_markdown if options.markdown else report.as_text
    print(surroundings(), *map(show, tables), sep="\n\n")
    if options.json:
        everything = {
            str(count): {w: {c: asdict(f) for c, f in row.items()} for w, row in table.items()}
            for count, table in measured.items()
        }
        everything["imports"] = {name: asdict(figure) for name, figure in imports.items()}
        options.json.write_text(json.dumps({"surroundings": surroundings(), "measured": everything}, indent=1))
    failures = report.missed(one, two)
    if tables and any(report.MISSED in line for line in tables[-1] if imports):
        failures.append("W7 (import)")
    print("\nmissed: " + ("; ".join(failures) or "nothing"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
