"""Everything that touches a student's objects. These functions travel into the sandbox, so they are self-contained:
standard library and NumPy only, no other module of ours. They return plain trees (None, bool, int, float, str, lists,
tuples, dicts, arrays), in which an exception of the student's code is data, not an exception.
"""

from __future__ import annotations

import inspect
import operator
import os
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

LONGEST_TEXT = 400
LARGEST_ARRAY = 1_000_000
OUR_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def run_programs(engine: Any, programs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run every program on every one of its draws with one engine (a class or function that makes tensors).

    A program is {"function": ..., "draws": [{"inputs": [...], "cotangent": ..., "again": ..., "dtype": ...}, ...]}.
    `cotangent` None means `backward()` without an argument. `again`, if given, is the cotangent of a second backward
    call on a fresh graph over the same leaves. Result, per program: {"draws": [...]}, and, if an exception ended it,
    {"error": {...}, "draw": number, "backward": whether it came after the value was known} with the draws before it.
    All exceptions but KeyboardInterrupt become data: a student's engine may well raise SystemExit.
    """
    try:
        tracked = takes(engine, "requires_grad")
    except Exception as error:
        return [{"error": described(error), "draw": 0} for _ in programs]
    return [_run_program(engine, tracked, program["function"], program["draws"]) for program in programs]


def _run_program(engine: Any, tracked: bool, function: Callable[..., Any], draws: list[Any]) -> dict[str, Any]:
    results: list[dict[str, Any]] = []
    for draw in draws:
        result: dict[str, Any] = {}
        try:
            _run_draw(engine, tracked, function, draw, result)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return {"error": described(error), "draw": len(results), "draws": results, "backward": "value" in result}
        if "returned" in result:
            return {"returned": result["returned"], "leaf": result["leaf"], "draw": len(results)}
        results.append(result)
    return {"draws": results}


def _run_draw(
    engine: Any, tracked: bool, function: Callable[..., Any], draw: dict[str, Any], result: dict[str, Any]
) -> None:
    """Run one draw, and put each result into `result` as soon as it is known."""
    leaves = [leaf_of(engine, tracked, value, draw["dtype"]) for value in draw["inputs"]]
    result["made"] = [plain(leaf.data, tracked) for leaf in leaves]
    output = function(*leaves)
    if not hasattr(output, "backward"):
        result["returned"] = type(output).__name__[:LONGEST_TEXT]
        result["leaf"] = type(leaves[0]).__name__[:LONGEST_TEXT]
        return
    result["value"] = plain(output.data, tracked)
    result["overwrites"] = call_backward(engine, tracked, output, draw["cotangent"], draw["dtype"])
    result["gradients"] = [plain(leaf.grad, tracked) for leaf in leaves]
    result["inputs"] = [plain(leaf.data, tracked) for leaf in leaves]
    if draw["again"] is not None:
        call_backward(engine, tracked, function(*leaves), draw["again"], draw["dtype"])
        result["again"] = [plain(leaf.grad, tracked) for leaf in leaves]


def leaf_of(engine: Any, tracked: bool, value: Any, dtype: str) -> Any:
    """A fresh leaf. Engines of numbers get a Python float, engines that know `requires_grad` an array."""
    array = np.array(value, dtype=dtype)
    if tracked:
        return engine(array, requires_grad=True)
    return engine(float(array) if array.ndim == 0 else array)


def call_backward(engine: Any, tracked: bool, output: Any, cotangent: Any, dtype: str) -> bool:
    """Call `backward` with a cotangent; if it takes none, call it on the sum of output times cotangent. Returns whether
    something has written into the array of the cotangent.
    """
    if cotangent is None:
        output.backward()
        return False
    array = np.array(cotangent, dtype=dtype)
    seed = float(array) if array.ndim == 0 and not tracked else array
    if hasattr(engine, "start_backward"):
        engine.start_backward(output, seed)
    elif _takes_gradient(output.backward):
        output.backward(seed)
    elif array.ndim == 0:
        (output * seed).backward()
    else:
        (output * engine(seed)).sum().backward()
    return not np.array_equal(array, np.array(cotangent, dtype=dtype), equal_nan=True)


def run_parts(engine: Any, parts: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """Run pieces of a traced expression (see `tracing.py`), each like a program of its own.

    A part is {"steps": [...], "draws": [...]}. The answers are those of `run_programs`, with three more entries:
    `nodes`, how many operations the engine itself recorded (0 if its graph cannot be read); and, if the engine's
    `backward` takes no argument, `plain` for numbers, on which it was called without one, and `weighed` for arrays,
    which were multiplied by the incoming gradient and summed. Ends early after `seconds` of processor time: the
    findings must not depend on the load of the machine. Overflows give no warnings: the student has not asked for these
    runs.
    """
    tracked = takes(engine, "requires_grad")
    end = time.thread_time() + seconds
    answers: list[dict[str, Any]] = []
    for part in parts:
        if time.thread_time() > end:
            break
        with np.errstate(all="ignore"):
            answers.append(_run_part(engine, tracked, part["steps"], part["draws"]))
    return answers


def _run_part(engine: Any, tracked: bool, steps: list[Any], draws: list[Any]) -> dict[str, Any]:
    nodes, plain_backward, weighed = 0, False, False

    def function(*leaves: Any) -> Any:
        nonlocal nodes
        output = replayed(steps, leaves)
        nodes = _count_operations(output)
        return output

    try:
        leaves = [leaf_of(engine, tracked, value, draws[0]["dtype"]) for value in draws[0]["inputs"]]
        output = function(*leaves)
        if not hasattr(output, "backward"):
            names = [type(tensor).__name__[:LONGEST_TEXT] for tensor in (output, leaves[0])]
            return {"returned": names[0], "leaf": names[1], "draw": 0, "nodes": 0, "plain": False}
        takes = hasattr(engine, "start_backward") or _takes_gradient(output.backward)
        plain_backward = not takes and np.ndim(output.data) == 0
        weighed = not takes and not plain_backward
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return {"error": described(error), "draw": 0, "nodes": 0, "plain": False}
    if plain_backward:
        draws = [{**draw, "cotangent": None, "again": None} for draw in draws]
    answer = _run_program(engine, tracked, function, draws)
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
            result = getattr(operator, name)(*given)
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


def takes(function: Any, name: str) -> bool:
    """Whether a callable accepts an argument of that name; True if its signature is unknown."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _takes_gradient(backward: Any) -> bool:
    """Whether the first argument of a `backward` is the incoming gradient, and not, say, a set of visited nodes."""
    try:
        parameters = list(inspect.signature(backward).parameters.values())
    except (TypeError, ValueError):
        return True
    if not parameters:
        return False
    first = parameters[0]
    named = any(word in first.name.lower() for word in ("grad", "seed", "cotangent", "upstream", "incoming"))
    return named or isinstance(first.default, int | float)


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


def plain(value: Any, tracked: bool, depth: int = 0) -> Any:
    """A value as a plain tree. Anything else becomes {"odd": "name of its type"}.

    `tracked`: the engine keeps gradients in tensors of its own, as PyTorch does, so look inside them.
    """
    if value is None or type(value) in (bool, str, float):
        return value[:LONGEST_TEXT] if isinstance(value, str) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value) if abs(value) < 2**62 else {"odd": "a huge int"}
    if isinstance(value, float):
        return float(value)
    if isinstance(value, np.ndarray | np.generic):
        return _plain_array(np.asarray(value))
    if isinstance(value, list | tuple | dict) and depth < 6 and len(value) < 10_000:
        if isinstance(value, dict):
            return {str(key)[:LONGEST_TEXT]: plain(entry, tracked, depth + 1) for key, entry in value.items()}
        return [plain(entry, tracked, depth + 1) for entry in value]
    if tracked and depth < 3:
        if hasattr(value, "__array__"):
            return plain(np.asarray(value), tracked, depth + 1)
        if hasattr(value, "data"):
            return plain(value.data, tracked, depth + 1)
    return {"odd": type(value).__name__[:LONGEST_TEXT]}


def _plain_array(array: Any) -> Any:
    if array.size > LARGEST_ARRAY:
        return {"odd": f"an array of {array.size} numbers"}
    if array.dtype.kind not in "biuf":
        return {"odd": f"array of {array.dtype}"[:LONGEST_TEXT]}
    return np.array(array, subok=False)


def described(error: BaseException) -> dict[str, str]:
    """An exception as data: its type, its message, and the line of the student's code that raised it."""
    description = {"type": "an exception", "message": "", "line": ""}
    try:
        description["type"] = str(type(error).__name__)[:LONGEST_TEXT]
        description["line"] = _line_of(error)
        description["message"] = str(error).strip()[:LONGEST_TEXT]  # some of NumPy's end with a space
    except BaseException:
        return description
    return description


def _line_of(error: BaseException) -> str:
    """The text of the innermost line outside this package, the standard library and installed packages. An error that
    came from the sandbox brings the lines of the student's cells with it.
    """
    brought = getattr(error, "student_where", ())
    if brought:
        return str(brought[-1][1]).strip()[:LONGEST_TEXT]
    line = ""
    frames = traceback.walk_tb(error.__traceback__)
    for number, (frame, line_number) in enumerate(frames):
        filename = frame.f_code.co_filename
        foreign = filename.startswith(OUR_PACKAGE) or "site-packages" in filename or "/lib/python" in filename
        if not foreign and not filename.startswith("<frozen"):
            summary = traceback.FrameSummary(filename, line_number, frame.f_code.co_name)
            line = summary.line or line
        if number > 5_000:
            break
    return line[:LONGEST_TEXT]
