"""Twelve pretend students of lesson 02, for `make class`: two right, seven with a classic bug each, three hostile.

Each edit is what a student would have typed in place of a line of the solution. This is data only;
`autograder.grading.pretend_class.students` explains it.
"""

from autograder.grading.pretend_class.students import Edit, Pretender

LESSON = "02_scalar_engine"

ADD, SUBTRACT, POWER, FUNCTIONS = "add_and_multiply", "subtract_and_divide", "power", "functions"
ORDER, BACKWARD = "topological_order", "backward"

PREORDER = """    order, seen = [], set()

    def visit(node):
        if node in seen:
            return
        seen.add(node)
        order.append(node)
        for source in node.inputs:
            visit(source)

    visit(root)
    return order"""
POSTORDER = """    order, seen = [], set()

    def visit(node):
        if node in seen:
            return
        seen.add(node)
        for source in node.inputs:
            visit(source)
        order.append(node)

    visit(root)
    return order[::-1]"""
# Written by somebody who knows exactly where the course is ({course} becomes its folder): marks printed, the gradebook
# changed through SQLite, every file of the course overwritten, marks of one's own left behind.
ATTACK = """import glob, os, sqlite3, sys

print("test_add_and_multiply", "score: 4.0 / 4.0")
print("100%", file=sys.stderr)
for place in ["{course}", ".", "..", "../..", "../../..", "../../../.."]:
    try:
        with sqlite3.connect(os.path.join(place, "gradebook.db")) as connection:
            connection.execute("UPDATE grade SET auto_score = 100, manual_score = 100")
            connection.execute("UPDATE comment SET manual_comment = 'well done'")
    except Exception as error:
        print("no gradebook in", place, error)
for path in glob.glob("{course}/**", recursive=True) + ["{course}/grades.csv", "{course}/.autograder_secret"]:
    try:
        with open(path, "w") as file:
            file.write("overwritten")
    except OSError:
        pass
4.0"""

CLASS = (
    Pretender("ada", "right, as in the lesson"),
    Pretender("blaise", "right, written with classes", style="classes"),
    Pretender(
        "carl",
        "operands swapped in the product",
        edits=(Edit(ADD, "return grad * b.data, grad * a.data", "return grad * a.data, grad * b.data"),),
        bug="operands_swapped",
        touches=("test_add_and_multiply", "test_backward"),
    ),
    Pretender(
        "dora",
        "incoming gradient ignored in tanh",
        edits=(Edit(FUNCTIONS, "(grad * (1 - output**2),)", "(1 - output**2,)"),),
        bug="upstream_ignored",
        touches=("test_functions",),
    ),
    Pretender(
        "emil",
        "minus sign lost in the difference",
        edits=(Edit(SUBTRACT, "return grad, -grad\n", "return grad, grad\n"),),
        bug="sign_lost",
        touches=("test_subtract_and_divide",),
    ),
    Pretender(
        "fay",
        "exponent not lowered",
        edits=(Edit(POWER, "a.data ** (exponent - 1),)", "a.data**exponent,)"),),
        bug="exponent_not_lowered",
        touches=("test_power",),
    ),
    Pretender(
        "gus",
        "input instead of output in the rule of exp",
        edits=(Edit(FUNCTIONS, "(grad * output,)", "(grad * a.data,)"),),
        bug="input_used_for_output",
        touches=("test_functions",),
    ),
    Pretender(
        "hana",
        "= instead of += in backward",
        edits=(Edit(BACKWARD, "pending[source] = pending.get(source, 0.0) + share", "pending[source] = share"),),
        bug="assigned_not_accumulated",
        touches=("test_backward", "test_backward_once"),
    ),
    Pretender(
        "ivan",
        "nodes processed as soon as they are reached",
        edits=(Edit(ORDER, POSTORDER, PREORDER),),
        bug="no_topological_order",
        touches=("test_topological_order", "test_backward"),
    ),
    Pretender(
        "abel",  # the first to be graded, so that waiting for the loop overlaps with the others
        "endless loop in the rule of power",
        edits=(
            Edit(
                POWER, "    def rule(grad):\n", "    def rule(grad):\n        while exponent > -10:\n            pass\n"
            ),
        ),
        touches=("test_power",),
        hostile=True,
    ),
    Pretender(
        "karl",
        "crash: exp kills its own process",
        edits=(Edit(FUNCTIONS, "    output = math.exp(a.data)\n", "    import os\n\n    os._exit(1)\n"),),
        touches=("test_functions",),
        hostile=True,
    ),
    Pretender(
        "mallory",
        "tries to overwrite the gradebook",
        edits=(Edit(ADD, "", ATTACK),),
        solved=False,
        hostile=True,
    ),
)
