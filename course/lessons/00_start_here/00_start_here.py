# %% [markdown]
# # Start here
#
# *About 20 minutes. You build one rule, for a product. You need a little Python and nothing else.*
#
# In this course you build a machine that differentiates programs. Sooner or later one of your gradients will be wrong: right size, wrong sign; or right for 2 and 3, wrong for 3 and 2. Nothing will crash. **How will you notice?**
#
# This short notebook shows how, and where everything is. It is worth two points, so that you see what points look like.

# %% [markdown] items="141"
# After this lesson you can
#
# 1. run cells, in an order that makes sense, and start over when things get mixed up;
# 2. read the card of a check that fails, and act on it;
# 3. open a hint, answer a quiz, see how far you have come;
# 4. stop a cell that never ends, and save and validate your work;
# 5. explain in everyday words what the parts of the machine do.

# %% [markdown]
# ## 1. Cells
#
# A notebook consists of cells; gray ones hold Python. Click into the next one and press **Shift+Enter**: it runs, and the cursor moves on.

# %%
weight = 3
print("the weight is", weight)

# %% [markdown]
# The number in square brackets on the left counts what has run: `[1]` was first. A star, `[*]`, means that the cell is running or waiting for its turn.
#
# What a cell defines stays in memory, and every later cell can use it. Before you run the next cell, say what it prints. Then run it three times, and predict again before each run.

# %%
weight = weight * 2
print("the weight is", weight)

# %% [markdown]
# Each run doubled it again: only what has *run* counts, not what is written on the page. So a notebook can end in a state that its text does not explain. Two rules prevent that:
#
# * Run cells from top to bottom. After a change further up, run what depends on it again.
# * When in doubt, choose *Kernel*, then *Restart Kernel and Run All Cells*. A restart empties the memory. It deletes no text and no code.
#
# A cell that uses a name before it was defined fails like this. This error is intentional; read its last line:

# %% tags=["raises-exception"]
print(weigth)

# %% [markdown]
# `NameError` has two usual causes: a typo, as here, or a cell further up that has not run yet. After a restart it is usually the second one.
#
# Every lesson starts with a cell that imports what the lesson needs. It is folded to one line, and so are the cells that check your answers. Run them as they are. To read one, click on its three dots.

# %%
import math
import time

from autograder.student import between, check, check_gradients, hints, pack, predict, progress, quiz

# %% [markdown]
# ## 2. A demonstration
#
# Some cells only show something, with PyTorch, plots or live pictures. Below is the computation `dish = soup + sauce`, where both are made from the same `broth`. **Predict:** if the broth gets saltier by a tiny amount, by how many times that amount does the dish get saltier?
#
# When a cell asks a question, type your answer or choose *Skip*, and the cell shows the rest. Predictions are not graded. Then click into the picture and step with the arrow keys (or with its buttons): values travel forward, then gradients travel back.

# %% tags=["demo"]
import torch

from mini_autograd.widgets import explore

predict("By how many times as much does the dish get saltier?")
broth = torch.tensor(0.9, requires_grad=True)
soup = broth * 3
sauce = broth * 2
dish = soup + sauce
explore(dish, names={"broth": broth, "soup": soup, "sauce": sauce, "dish": dish})

# %% [markdown]
# Two ways to get this number without the picture:

# %% tags=["demo"]
dish.backward()
print("PyTorch says: ", broth.grad.item())

# %%
def dish_of(broth):
    return broth * 3 + broth * 2


change = 1e-6
print("tried it out: ", (dish_of(0.9 + change) - dish_of(0.9)) / change)

# %% [markdown]
# Two methods that share nothing give the same number: one moved the input and looked, the other sent a message back through the computation. It is the **gradient** of `dish` with respect to `broth`.

# %% [markdown]
# ## 3. A check that fails
#
# Here is a small part of the machine. It knows one operation, the product. In lesson 02 you build its class from scratch; here, look only at the rule that follows it.

# %%
class MiniTensor:
    """A number that remembers which two numbers it was multiplied from."""

    def __init__(self, data, inputs=()):
        self.data = float(data)
        self.grad = 0.0
        self.inputs = inputs

    def __mul__(self, other):
        return MiniTensor(self.data * other.data, (self, other))

    def backward(self, gradient=1.0):
        self.grad += gradient
        if self.inputs:
            a, b = self.inputs
            for source, share in zip(self.inputs, product_rule(a.data, b.data, gradient)):
                source.backward(share)

# %% [markdown]
# A colleague wrote the rule: it gets the two factors and the gradient that arrives from the output, and returns one share for each factor.

# %%
def product_rule(a, b, gradient):
    return gradient * a, gradient * b

# %% [markdown]
# The colleague tried it at one point, where all is well:

# %%
a, b = MiniTensor(4.0), MiniTensor(4.0)
(a * b).backward()
print("a.grad =", a.grad, "  b.grad =", b.grad)

# %% [markdown]
# **Predict** where the rule is right. Then run the check. It tries random numbers and compares the gradients with three others (from the course's own engine, from PyTorch, and from moving the inputs).

# %% tags=["raises-exception"]
predict("Where is the rule right?", "everywhere", "only where a and b are equal", "nowhere")
check_gradients({"a * b": lambda a, b: a * b}, [between(-3.0, 3.0), between(-3.0, 3.0)])

# %% [markdown]
# Read such a card from top to bottom:
#
# * whether all is right;
# * a **question**, if your wrong numbers are those that a well-known mistake produces. Think before you open what is below it: the idea, and the **likely bug**. If you run the cell a second time and it still fails, the card names the bug at once;
# * one example of what is wrong: your number and the right one. *Inputs and numbers* opens to the inputs, the gradient that arrived, and what each of the others found;
# * at the end, what was compared with what.
#
# Below it is an error, `CheckFailed`, so that you do not overlook the card. Run a check as often as you like.

# %% [markdown]
# ### Exercise: fix it
#
# Write the rule yourself. An exercise cell holds a function with a description, and a line `raise NotImplementedError()` that waits to be replaced. Delete that line, write yours, run the cell, then run the check below.
#
# Stuck? Run the cell with `hints`: it opens one hint at a time. Hints cost no points.

# %% [markdown] tags=["hint"] exercise="product_rule"
# Think of a rectangle with the sides `a` and `b`. If `a` grows by a millimeter, its area grows by a strip. How long is the strip?

# %% [markdown] tags=["hint"] exercise="product_rule"
# The strip along the side that grows is as long as the *other* side. So the share of `a` is the gradient times `b`.

# %% solution="product_rule"
def product_rule(a, b, gradient):
    """The shares of the two factors in the gradient of a * b.

    a, b: floats, the factors
    gradient: float, the gradient that arrives from the product
    Returns: the tuple (share of a, share of b) of floats

    >>> product_rule(2.0, 3.0, 10.0)
    (30.0, 20.0)
    """
    ### BEGIN SOLUTION
    return gradient * b, gradient * a
    ### END SOLUTION

# %% [markdown]
# The gray cell below is a **test cell**. You cannot change it, and your points come from it. Its cases stand in `checks_00.py`, beside this notebook. When you hand in, it runs once more on other numbers, and a part that you do not see here, the hidden checks, tries your code in other ways. There is nothing to guess: hidden checks ask only for what the text says.

# %% check="product_rule"

# %% [markdown] items="140"
# ## 4. The machine, as a kitchen
#
# A guest says: too salty. Who hears of it? In a kitchen that works like our machine:
#
# | in the kitchen | in the machine | in PyTorch |
# | --- | --- | --- |
# | while cooking, every dish gets a slip of paper, pinned to the slips of what went into it | recording: the *graph* | happens by itself |
# | the slip of one dish: how it was made, and from what | a *node* with its *rule* and its *inputs* | `grad_fn`, `next_functions` |
# | things that were delivered, not cooked | *leaves* | `broth` |
# | the complaint walks back along the slips; each cook multiplies it by how much an ingredient matters in the dish, and sends each share on | the *backward pass* with its *incoming gradients* | `dish.backward()` |
# | a cook who is named on two slips waits for both complaints and adds them up before going on | *fan-out*, *topological order* | inside `backward` |
# | a mailbox at each supplier's door: the letters of several evenings pile up until somebody empties it | `.grad` and its accumulation | `broth.grad` |
# | the manager, who reads the boxes, changes the orders for tomorrow a little, and empties the boxes | the *optimizer* | `step`, `zero_grad` |
# | an evening of tasting on which nobody writes slips | no recording | `no_grad` |
#
# No analogy is perfect. Here a complaint is one number, and cooks do not argue. But whenever a term in this course seems abstract, come back and ask what it would be in the kitchen. You build the slips and the rules in lesson 02, the waiting in 03, and the mailbox in 05.

# %% [markdown]
# ## 5. When something hangs
#
# A cell that never ends shows `[*]` forever, and every cell after it waits. To stop it, press the **square button** in the toolbar above (*Interrupt the kernel*; or press Esc, then the letter I twice). You get a `KeyboardInterrupt`, and everything in memory is still there.
#
# Practice it: change `False` to `True`, run the cell, and stop it. Then change it back. (Not in a browser tab: there the button cannot stop a cell, only *Kernel*, *Restart Kernel* can.)

# %%
never_ends = False
while never_ends:
    time.sleep(0.1)
print("done")

# %% [markdown]
# If even that does not help, restart the kernel (*Kernel*, *Restart Kernel*) and run the cells from the top. A message such as *the kernel appears to have died* means that the Python process has ended, usually because it ran out of memory. Restart here too; your text is safe.
#
# Running all cells stops at the first unexpected error. A check that gives points raises none: its card says what is wrong, and the run goes on. To go on after a cell that failed, click into the next cell and choose *Run*, then *Run Selected Cell and All Below*.
#
# | you see | it means | do |
# | --- | --- | --- |
# | `[*]` for a long time | running, or waiting for a cell before it | wait, or the square button |
# | `NameError` | a name is not defined (yet) | look for typos; *Run*, *Run All Above Selected Cell* |
# | `NotImplementedError` | an earlier exercise has not been solved | solve it, or read on; the next lesson does not depend on it |
# | `CheckFailed` | a check found something wrong | read the card above the error |
# | `[ ]` | the cell has not run since the restart | run it |
# | text with stars and backquotes | you double-clicked it, and it can be edited | Shift+Enter |
# | a cell has vanished | a key was pressed outside a cell; D twice deletes one | *Edit*, *Undo Cell Operation* |
# | no pictures, only text | a saved notebook without a running kernel | run the cell again |

# %% [markdown]
# ## 6. Saving, validating, going on
#
# * **Save** with Ctrl+S (Cmd+S on a Mac). JupyterLab also saves by itself.
# * **Validate** (a toolbar button; not in a browser tab) runs a copy of your saved notebook from top to bottom in a fresh Python and says whether all visible checks pass. Do that before you hand in: it finds cells that only worked because of what had run before. It also waits for every cell, so set `never_ends` back to `False` first.
# * The visible checks are your teacher: they catch most mistakes. Graded work adds hidden ones.
# * Do not copy or delete exercise and test cells; the grader finds them by their names. New cells of your own are welcome anywhere.
# * Lessons never overwrite your notebook. If a lesson has been improved since, the new version is put beside yours.
#
# The button below saves your notebooks and your engine as one file. Hand it in, or go on elsewhere: `make lab ARGS="--from lessons.zip"`.

# %% tags=["demo"]
pack()

# %% [markdown]
# How far you have come, in all lessons, according to your saved notebooks:

# %% tags=["demo"]
progress()

# %% [markdown]
# ## 7. The lessons
#
# Each lesson says at its start how many minutes it takes, what you build and what you need. Two sittings are fine. Many lessons end with an optional part, *Further*: no later lesson needs it. Ten weeks of the core take about 19 hours (lessons 00 to 08, 11, 12 and one of 13 to 16), and a short path about 7 (00, 02, 04, 05 and 11). A lesson that you skip comes from the reference engine; its successor then says so. Each lesson also begins with a question that you cannot answer yet.
#
# | lesson | you build | its question |
# | --- | --- | --- |
# | 01 | a gradient by moving inputs, and gradients by hand | two programs disagree about a slope: which one is wrong? |
# | 02 | an engine for numbers | how can it add up more terms than it has time to look at? |
# | 03 | an order for any graph, without recursion | four engines pass their tests: which are wrong? |
# | 04 | the engine for arrays | what happens to a gradient when shapes were stretched? |
# | 05 | leaves, `.grad` and the zeroing, as in PyTorch | what does training do if nobody empties the boxes? |
# | 06 | a way to free what is no longer needed | which training loops eat up the memory? |
# | 07 | switches for recording | what do they save, and what do they break? |
# | 08 | rules of your own, and a check for them | when may you trust a rule? |
# | 09 | arrays that change in place, and views | who notices when somebody writes into an array behind autograd's back? |
# | 10 | gradients of gradients, and hooks | what must a backward pass keep so that it can be differentiated itself? |
# | 11 | modules, Adam, a loader, a training loop | what, apart from gradients, must be right in training? |
# | 12 | instruments that find what is wrong in a training run | nothing crashes: where do you look? |
# | 13 | memory that is given up and computed again | what does a training step need at its worst moment? |
# | 14 | a chain of operations run block by block | what is a program waiting for, if not for its arithmetic? |
# | 15 | derivatives that travel forward | when is forward cheaper than backward? |
# | 16 | a small Transformer | does your engine train it as PyTorch does? |
#
# Do them in this order. If you get stuck, go on anyway: a lesson that builds on your engine takes the course's engine instead of yours until yours is ready, and says so.

# %% [markdown]
# ## 8. Quiz
#
# Each lesson ends with a quiz. Wrong answers are explained too, and you may change yours as often as you like.

# %% test="quiz_00" points=1 tags=["quiz"]
question(
    "state",
    "A cell says `n = n + 1`. You run it twice, then choose *Restart Kernel and Run All Cells*. A cell further up says `n = 0`. What is `n`?",
    right("1", "The restart emptied the memory. Then every cell ran once, from the top."),
    wrong("2", "That was `n` before the restart.", misconception="memory_survives_restart"),
    wrong("3", "The two runs before the restart are forgotten.", misconception="memory_survives_restart"),
    wrong("0", "The cell with `n + 1` has run once since.", misconception="text_is_state"),
)
question(
    "one_point",
    "The wrong rule gave the right gradients at `a = 4` and `b = 4`. Why does the check use random numbers?",
    right("Where `a` and `b` are equal, swapping them changes nothing, so the mistake cannot show.", "At a point without such a coincidence, a wrong rule gives wrong numbers."),
    wrong("Random numbers are more exact.", "They are ordinary numbers. What matters is that they are different from each other.", misconception="random_is_exact"),
    wrong("At 4 the rule is right, elsewhere it is wrong, so the rule should have a special case for 4.", "One rule holds for all numbers. At 4 two mistakes happen to look like none.", misconception="special_cases"),
    wrong("To make guessing harder.", "Nobody guesses gradients. The danger is a coincidence.", misconception="tests_are_against_cheating"),
)
question(
    "likely_bug",
    "A card shows wrong numbers, but no likely bug. What do you know?",
    right("The gradient is wrong, and the numbers fit none of the well-known mistakes.", "The verdict comes from comparing numbers. The name of the mistake is an extra that is shown when it fits."),
    wrong("The check is mistaken.", "Three other routes agree with each other and not with you.", misconception="no_diagnosis_no_error"),
    wrong("The gradient is right up to rounding.", "Rounding is allowed for. What is marked wrong is off by more than that.", misconception="no_diagnosis_no_error"),
    wrong("There are several mistakes.", "Possible, but one unusual mistake looks just the same.", misconception="no_diagnosis_two_bugs"),
)
question(
    "letter_box",
    "In the kitchen, the manager forgets to empty the mailboxes. What does `.grad` hold the next evening?",
    right("The letters of both evenings, added up.", "That is what *accumulation* means. Lesson 05 finds out what training makes of it."),
    wrong("Those of the second evening.", "Nobody took the old ones out.", misconception="assigned_not_accumulated"),
    wrong("Nothing: a full box takes no more.", "A sum has room for every number.", misconception="grad_is_write_once"),
    wrong("An error.", "Adding is the ordinary behavior, and sometimes just what you want.", misconception="accumulation_is_an_error"),
)

# %% [markdown] items="141"
# ## Summary
#
# | you want to | do |
# | --- | --- |
# | run a cell | Shift+Enter |
# | stop a cell | the square button; in a browser tab: Kernel, Restart Kernel |
# | start over | Kernel, Restart Kernel and Run All Cells |
# | know whether your gradient is right | run the check; read the card from the top |
# | get help | the cell with `hints`, one click per hint |
# | see how far you are | `progress()` |
# | hand in | `pack()` |
# | make sure that all is well | save, then Validate; in a browser tab: Kernel, Restart Kernel and Run All Cells |
#
# So this is how you will notice a wrong gradient: by comparing it with one that was found by another method. Lesson 01 starts right there, with two methods that do not agree, and asks which of them to believe.
