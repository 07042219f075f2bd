"""The points that a check earned: a number that carries the reports which explain it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.cards.check_report import Report


class Credit(float):
    """Points earned. Adding two credits adds the points and keeps both reports.

    As the last expression of a test cell it is nbgrader's partial credit, because its text is the bare number
    (`1.5`); in a notebook it shows the cards of its reports.
    """

    reports: tuple[Report, ...]
    live: Mapping[str, Any]
    """What a notebook shows instead of the cards if it can: the mime types of a widget."""

    def __new__(
        cls, points: float, reports: tuple[Report, ...] = (), live: Mapping[str, Any] = MappingProxyType({})
    ) -> Credit:
        credit = super().__new__(cls, round(float(points), 9))
        credit.reports, credit.live = tuple(reports), live
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

    def still(self) -> dict[str, str]:
        """The cards for pages without a kernel, with the text that nbgrader reads: see `_ipython_display_`."""
        text = f"{self:g} of {self.whole:g} points" if self.is_whole else repr(self)
        return {"text/html": self._repr_html_(), "text/plain": text}

    @property
    def whole(self) -> float:
        return sum(report.points or 0.0 for report in self.reports)

    @property
    def is_whole(self) -> bool:
        return bool(self.reports) and self >= self.whole - 1e-9

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The bare number for nbgrader. A page shows the widget if there is one, else the points below the cards: see
        `_ipython_display_`.
        """
        bundle = {"text/plain": repr(self), **self.live}
        if self.live:
            bundle["text/html"] = self._repr_html_()
        elif self.reports:
            bundle["text/html"] = f"<small>{self:.4g} of {self.whole:.4g} points</small>"
        return bundle

    def _ipython_display_(self) -> None:
        """Show the cards: as a page, as a widget if there is one, and as text for a terminal.

        If every check passed, the number is left out. The hidden checks are missing on a laptop, so a right solution's
        credit is below the cell's points, and nbgrader's Validate would call it partly wrong. A cell that shows no
        value is fully right to nbgrader. Otherwise the number follows in IPython's ordinary way.
        """
        from IPython.display import display

        if self.is_whole:
            display({**self.live, **self.still()}, raw=True)
            return
        if self.reports and not self.live:
            text = "\n".join(report.text() for report in self.reports)
            display({"text/html": self._repr_html_(), "text/plain": text}, raw=True)
        raise NotImplementedError
