"""The points that a check earned: a number that carries the reports which explain it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.checks.report import Report


class Credit(float):
    """Points earned. Adding two credits adds the points and keeps both reports.

    As the last expression of a test cell it is nbgrader's partial credit, because its text is the bare number
    (`1.5`); in a notebook it shows the cards of its reports.
    """

    reports: tuple[Report, ...]

    def __new__(cls, points: float, reports: tuple[Report, ...] = ()) -> Credit:
        credit = super().__new__(cls, round(float(points), 9))
        credit.reports = tuple(reports)
        return credit

    def __add__(self, other: float) -> Credit:
        if not isinstance(other, int | float):
            return NotImplemented
        return Credit(float(self) + float(other), self.reports + tuple(getattr(other, "reports", ())))

    def __radd__(self, other: float) -> Credit:
        if not isinstance(other, int | float):
            return NotImplemented
        return Credit(float(other) + float(self), tuple(getattr(other, "reports", ())) + self.reports)

    def __repr__(self) -> str:
        return float.__repr__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Credit, (float(self), self.reports)

    def _repr_html_(self) -> str:
        return "\n".join(report.html() for report in self.reports)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if self.reports:
            bundle["text/html"] = self._repr_html_()
        return bundle

    def _ipython_display_(self) -> None:
        """Show the cards without the number when every check passed; otherwise leave it to IPython's ordinary way.

        The hidden checks are missing on a laptop, so a right solution's credit is below the cell's points, and
        nbgrader's Validate would call it partly wrong. A cell that shows no value is fully right to nbgrader.
        """
        whole = sum(report.points or 0.0 for report in self.reports)
        if not self.reports or self < whole - 1e-9:
            raise NotImplementedError
        from IPython.display import display

        display({**self._repr_mimebundle_(), "text/plain": f"{self:g} of {whole:g} points"}, raw=True)
