"""The bugs of the bank, one module per family; `autograder.bugs.bank` gathers them."""
