"""Everything that touches a student's objects. These functions travel into the sandbox: standard library and NumPy
only, beside the two modules of ours that travel with them. They return plain trees (see `plain_values.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.runs.plain_values import LONGEST_TEXT, described, plain
from autograder.runs.ways import Unseeded, Ways, operated
from mini_autograd.system import processor_time


def run_programs(engine: Any, programs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run every program on every one of its draws with one engine (a class or function that makes tensors).

    A program is {"function": ..., "draws": [{"inputs": [...], "cotangent": ..., "again": ..., "dtype": ...}, ...]}.
    `cotangent` None means `backward()` without an argument. `again`, if given, is the cotangent of a second backward
    call on a fresh graph over the same leaves. Result, per program: {"draws": [...]}, and, if an exception ended it,
    {"error": {...}, "draw": number, "backward": whether it came after the value was known} with the draws before it.
    All exceptions but KeyboardInterrupt become data: a student's engine may well raise SystemExit.
    """
    try:
        ways = Ways(engine)
    except Exception as error:
        return [{"error": described(error), "draw": 0} for _ in programs]
    return [_run_program(ways, program["function"], program["draws"]) for program in programs]


def _run_program(ways: Ways, function: Callable[..., Any], draws: list[Any]) -> dict[str, Any]:
    """One program on its draws. If `backward` cannot be given a gradient, it begins with 1, and `unseeded` says why.
    `weighed`: the output was multiplied by its gradient first, because `backward` takes none. `begins`: `backward`
    begins with ones at an array.
    """
    answer = _run_draws(ways, function, draws)
    weighed = bool(ways.weighing)
    if "error" in answer and "unseeded" not in answer and ways.tried():
        answer = _run_draws(ways, function, draws)
    if "unseeded" in answer:
        ones = [{**draw, "cotangent": None, "again": None} for draw in draws]
        return {**_run_draws(ways, function, ones), "unseeded": answer["unseeded"], "begins": ways.begins()}
    return {**answer, "weighed": weighed}


def _run_draws(ways: Ways, function: Callable[..., Any], draws: list[Any]) -> dict[str, Any]:
    results: list[dict[str, Any]] = []
    for draw in draws:
        result: dict[str, Any] = {}
        try:
            _run_draw(ways, function, draw, result)
        except KeyboardInterrupt:
            raise
        except Unseeded as unseeded:
            return {"unseeded": unseeded.missing}
        except BaseException as error:
            return {"error": described(error), "draw": len(results), "draws": results, "backward": "value" in result}
        if "returned" in result:
            return {"returned": result["returned"], "leaf": result["leaf"], "draw": len(results)}
        results.append(result)
    return {"draws": results}


def _run_draw(ways: Ways, function: Callable[..., Any], draw: dict[str, Any], result: dict[str, Any]) -> None:
    """Run one draw, and put each result into `result` as soon as it is known."""
    scalars = [np.ndim(value) == 0 for value in draw["inputs"]]
    leaves = [ways.leaf(value, draw["dtype"]) for value in draw["inputs"]]
    result["made"] = _all(ways.numbers, leaves, scalars)
    output = function(*leaves)
    if not ways.can_start(output):
        result["returned"] = type(output).__name__[:LONGEST_TEXT]
        result["leaf"] = type(leaves[0]).__name__[:LONGEST_TEXT]
        return
    result["value"] = ways.numbers(output, np.ndim(draw["cotangent"]) == 0)
    result["overwrites"] = ways.start(output, draw["cotangent"], draw["dtype"])
    result["gradients"] = _all(ways.gradient, leaves, scalars)
    result["inputs"] = _all(ways.numbers, leaves, scalars)
    if draw["again"] is not None:
        ways.start(function(*leaves), draw["again"], draw["dtype"])
        result["again"] = _all(ways.gradient, leaves, scalars)


def _all(read: Callable[[Any, bool], Any], leaves: list[Any], scalars: list[bool]) -> list[Any]:
    return [read(leaf, scalar) for leaf, scalar in zip(leaves, scalars, strict=True)]


def begins_at_arrays(engine: Any) -> bool:
    """Whether `backward` begins with ones at an array."""
    return Ways(engine).begins()


def ways_in_words(engine: Any) -> str:
    """How an engine works, in one line."""
    try:
        return Ways(engine).described()
    except Exception as error:
        said = described(error)
        return f"it cannot be tried: {said['type']}: {said['message']}"


def run_parts(engine: Any, parts: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """Run pieces of a traced expression (see `tracing.py`), each like a program of its own.

    A part is {"steps": [...], "draws": [...]}. The answers are those of `run_programs`, with three more entries:
    `nodes`, how many operations the engine itself recorded (0 if its graph cannot be read); and, if the engine's
    `backward` takes no argument, `plain` for numbers, on which it was called without one, and `weighed` for arrays,
    which were multiplied by the incoming gradient and summed. Ends early after `seconds` of processor time: the
    findings must not depend on the load of the machine. Overflows give no warnings: the student has not asked for these
    runs.
    """
    ways = Ways(engine)
    end = processor_time() + seconds
    answers: list[dict[str, Any]] = []
    for part in parts:
        if processor_time() > end:
            break
        with np.errstate(all="ignore"):
            answers.append(_run_part(ways, part["steps"], part["draws"]))
    return answers


def _run_part(ways: Ways, steps: list[Any], draws: list[Any]) -> dict[str, Any]:
    nodes, plain_backward, weighed = 0, False, False

    def function(*leaves: Any) -> Any:
        nonlocal nodes
        output = replayed(steps, leaves)
        nodes = _count_operations(output)
        return output

    try:
        leaves = [ways.leaf(value, draws[0]["dtype"]) for value in draws[0]["inputs"]]
        output = function(*leaves)
        if not ways.can_start(output):
            names = [type(tensor).__name__[:LONGEST_TEXT] for tensor in (output, leaves[0])]
            return {"returned": names[0], "leaf": names[1], "draw": 0, "nodes": 0, "plain": False}
        takes = ways.takes_gradient(output)
        plain_backward = not takes and np.ndim(ways.numbers(output)) == 0
        weighed = not takes and not plain_backward
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return {"error": described(error), "draw": 0, "nodes": 0, "plain": False}
    if plain_backward:
        draws = [{**draw, "cotangent": None, "again": None} for draw in draws]
    answer = _run_program(ways, function, draws)
    return {**answer, "nodes": nodes, "plain": plain_backward, "weighed": weighed}


def replayed(steps: list[Any], leaves: Any) -> Any:
    """Carry out recorded steps, each (kind, name, arguments, options, pick), on leaves. Returns the last result.

    A value is referred to by {"value": number}, which counts first the leaves, then the results of the steps. `pick`
    says which of several results is meant; an engine whose maximum gives the values alone has nothing to pick from.
    """
    values = list(leaves)

    def filled(tree: Any) -> Any:
        if isinstance(tree, dict):
            return values[tree["value"]]
        if isinstance(tree, list | tuple):
            return type(tree)([filled(entry) for entry in tree])
        return tree

    for kind, name, arguments, options, pick in steps:
        given = [filled(argument) for argument in arguments]
        if kind == "operator":
            result = operated(name, *given)
        elif kind == "attribute":
            result = getattr(given[0], name)
        else:
            result = getattr(given[0], name)(*given[1:], **{key: filled(value) for key, value in options.items()})
        alone = pick is None or (pick == 0 and not isinstance(result, tuple | list))
        values.append(result if alone else result[pick])
    return values[-1]


def _count_operations(output: Any) -> int:
    """How many operations lead to a tensor, in the graph that the engine keeps; 0 if it cannot be read."""
    seen: set[int] = set()
    stack, kept = [getattr(output, "grad_fn", None) or output], []
    while stack and len(seen) < 100:
        node = stack.pop()
        inputs = _inputs_of(node)
        if inputs and id(node) not in seen:
            seen.add(id(node))
            kept.append(node)
            stack += inputs
    return len(seen)


def _inputs_of(node: Any) -> list[Any]:
    """The inputs of a node, by the names that engines commonly give them."""
    for name in ("next_functions", "inputs", "_prev", "_inputs", "parents"):
        found = getattr(node, name, None)
        if isinstance(found, list | tuple | set) and len(found) < 1000:
            nodes = [entry[0] if isinstance(entry, tuple) and entry else entry for entry in found]
            return [entry for entry in nodes if entry is not None]
    return []


def call_function(
    function: Any, calls: list[list[Any]], caught: type[BaseException] = BaseException
) -> list[dict[str, Any]]:
    """Call a student's function on each list of arguments: {"result": ..., "inputs": ...} or {"error": ...} each.

    Arrays of shape () are passed as Python floats, functions as they are. `inputs` are the arguments after the call.
    """
    results: list[dict[str, Any]] = []
    for arguments in calls:
        try:
            passed = [_argument(argument) for argument in arguments]
            result = function(*passed)
            after = [None if callable(argument) else plain(argument, False) for argument in passed]
            results.append({"result": plain(result, False), "inputs": after})
        except KeyboardInterrupt:
            raise
        except caught as error:
            results.append({"error": described(error)})
            break
    return results


def call_jvp(jvp: Any, calls: list[list[Any]]) -> list[dict[str, Any]]:
    """Call a student's forward mode, `jvp(function, inputs, tangents)`: {"result": [value, tangent], "changed": whether
    an array that was passed is another one now} or {"error": ...} each. Ends with the first error.
    """
    results: list[dict[str, Any]] = []
    for function, inputs, tangents in calls:
        passed = [tuple(np.array(array, dtype=np.float64) for array in arrays) for arrays in (inputs, tangents)]
        try:
            result = plain(jvp(function, *passed), False)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return [*results, {"error": described(error)}]
        pairs = zip((*inputs, *tangents), (*passed[0], *passed[1]), strict=True)
        results.append({"result": result, "changed": not all(np.array_equal(before, now) for before, now in pairs)})
    return results


def _argument(argument: Any) -> Any:
    if callable(argument):
        return argument
    array = np.array(argument, dtype=np.float64)
    return float(array) if array.ndim == 0 else array
