"""Reads the time at which something was handed in. What may mean two moments is refused, and never guessed.

Accepted are ISO 8601 and what `nbgrader submit` writes: date, time, and then an offset, UTC, a region of the time zone
database, or an abbreviation such as PST. An abbreviation has different meanings in the world, so only the course's own
zone (`c.Exchange.timezone`, by which nbgrader writes it) can say which. nbgrader's own reader takes it for UTC, and
`-0800` for 800 seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from traitlets.config import Config

DATE, CLOCK = r"\d{4}-\d\d-\d\d|\d{8}", r"\d\d:\d\d(:\d\d([.,]\d+)?)?|\d{4}(\d\d([.,]\d+)?)?"
TIME = re.compile(rf"(?P<when>({DATE})[ T]({CLOCK})) ?(?P<zone>\S*)", re.ASCII)
OFFSET = re.compile(r"[+-]\d\d(:?\d\d)?", re.ASCII)
REGION = re.compile(r"[A-Z]\w+(/[\w+-]+)+", re.ASCII)
UNIVERSAL = ("", "Z", "UTC", "GMT")
TIMESTAMP = "timestamp.txt"  # nbgrader's name of the file beside a submission
LONGEST_SHOWN = 40
NO_TIME = "{!r} is not a time such as 2026-03-01 12:00:00 UTC"
NO_ZONE = (
    "{!r} names no time zone that is known: write an offset such as -08:00, or a region such as America/Los_Angeles"
)
UNCLEAR = (
    "the zone of {!r} is not certain{}: write an offset such as -08:00 instead of an abbreviation, or set "
    "c.Exchange.timezone in nbgrader_config.py to the zone in which it was written, such as America/Los_Angeles"
)
OTHER_ZONE = ", since {} (c.Exchange.timezone) has no such abbreviation at that time"


class NoTimeError(ValueError):
    """A text that does not say which moment it means. Its own text says why, and what to write."""


def read_time(text: str | bytes, course_zone: str = "") -> datetime | None:
    """The moment in UTC, without a zone, as nbgrader keeps it; None for an empty text. A time without a zone is in UTC,
    as in nbgrader. Raises NoTimeError.
    """
    text = " ".join((text if isinstance(text, str) else text.decode(errors="replace")).split())
    if not text:
        return None
    shown = "".join(c if c.isprintable() else "?" for c in text[:LONGEST_SHOWN])
    found = TIME.fullmatch(text)
    if found is None:
        raise NoTimeError(NO_TIME.format(shown))
    zone = found["zone"]
    try:
        if zone.upper() in UNIVERSAL:
            moment = datetime.fromisoformat(found["when"]).replace(tzinfo=UTC)
        elif OFFSET.fullmatch(zone):
            moment = datetime.fromisoformat(found["when"] + zone)
        else:
            moment = _in_zone(datetime.fromisoformat(found["when"]), zone, course_zone, shown)
        return moment.astimezone(UTC).replace(tzinfo=None)
    except NoTimeError:
        raise
    except (ValueError, OverflowError) as error:  # the 30th of February, or before the year 1
        raise NoTimeError(NO_TIME.format(shown)) from error


def shown_time(moment: datetime) -> str:
    """A time of submission as people read it, in UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float) -> str:
    """A span of time as people say it, in its two largest units."""
    minutes, second = divmod(max(1, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    parts = [(days, "d"), (hour, "h"), (minute, "min"), (second, "s")]
    first = next(at for at, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)


def seconds_late(handed_in: datetime | None, due: datetime | None, extension: timedelta | None) -> float:
    """How long after the due date, with the student's extension, something was handed in; 0 if it was in time, or if
    one of the times is not known.
    """
    if handed_in is None or due is None:
        return 0.0
    return max(0.0, (handed_in - due - (extension or timedelta())).total_seconds())


def zone_of(config: Config) -> str:
    """The zone in which `nbgrader submit` writes times in this course; empty if the course sets none."""
    for section in ("ExchangeSubmit", "Exchange"):
        zone = (config.get(section) or {}).get("timezone")
        if isinstance(zone, str):
            return zone
    return ""


def _in_zone(when: datetime, name: str, course_zone: str, shown: str) -> datetime:
    """A time in a zone that has a name. In the hour that a clock shows twice, a region means the first one."""
    if REGION.fullmatch(name):
        if region := _region(name):
            return when.replace(tzinfo=region)
        raise NoTimeError(NO_ZONE.format(shown))
    region = _region(course_zone)
    for fold in (0, 1) if region else ():
        moment = when.replace(tzinfo=region, fold=fold)
        if moment.tzname() == name:
            return moment
    raise NoTimeError(UNCLEAR.format(shown, OTHER_ZONE.format(course_zone) if course_zone else ""))


def _region(name: str) -> ZoneInfo | None:
    """A zone of the database; None if it has none of this name."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):  # of a name that no zone has, of one that is a path, and of a folder's
        return None
