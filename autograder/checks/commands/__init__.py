"""Commands that check an engine in a file."""
