"""A time of submission is read as what it says, or refused."""

from __future__ import annotations

from datetime import datetime

import pytest
from nbgrader.utils import parse_utc
from traitlets.config import Config

from autograder.nbgrader_plugins.times import NoTimeError, read_time, shown_time, zone_of

LOS_ANGELES, BERLIN, SAO_PAULO = "America/Los_Angeles", "Europe/Berlin", "America/Sao_Paulo"
READ = [
    # text, the course's zone, and the moment in UTC
    ("2026-03-01 12:00:00.000000 UTC", "", "2026-03-01 12:00:00"),
    ("2026-03-01 12:00:00.250000 UTC\n", "", "2026-03-01 12:00:00.250000"),
    ("2026-03-01 12:00:00", "", "2026-03-01 12:00:00"),
    ("2026-03-01 12:00", LOS_ANGELES, "2026-03-01 12:00:00"),  # as nbgrader: without a zone it is UTC
    ("2026-03-01T12:00:00Z", LOS_ANGELES, "2026-03-01 12:00:00"),
    ("2026-03-01T12:00:00 gmt", "", "2026-03-01 12:00:00"),
    ("20260301T120000Z", "", "2026-03-01 12:00:00"),
    ("2026-03-01T12:00:00,5+02:00", "", "2026-03-01 10:00:00.500000"),
    ("2026-03-01 12:00:00 -0800", "", "2026-03-01 20:00:00"),
    ("2026-03-01 12:00:00 -08:00", "", "2026-03-01 20:00:00"),
    ("2026-03-01 12:00:00.000000 -03", SAO_PAULO, "2026-03-01 15:00:00"),  # its zone has no other abbreviation
    ("2026-03-01 12:00:00 +0545", "", "2026-03-01 06:15:00"),
    ("2026-03-01 12:00:00 America/Los_Angeles", "", "2026-03-01 20:00:00"),
    ("2026-07-01 12:00:00 America/Los_Angeles", BERLIN, "2026-07-01 19:00:00"),
    ("2026-07-01 12:00 America/Argentina/Buenos_Aires", "", "2026-07-01 15:00:00"),
    ("2026-07-01 12:00 Etc/GMT+8", "", "2026-07-01 20:00:00"),
    ("2026-03-01 12:00:00.000000 PST", LOS_ANGELES, "2026-03-01 20:00:00"),
    ("2026-07-01 12:00:00.000000 PDT", LOS_ANGELES, "2026-07-01 19:00:00"),
    ("2026-07-01 12:00:00.000000 CEST", BERLIN, "2026-07-01 10:00:00"),
    ("2026-03-01 12:00:00.000000 CET", BERLIN, "2026-03-01 11:00:00"),
    ("2026-01-01 12:00:00 IST", "Asia/Kolkata", "2026-01-01 06:30:00"),
    ("2026-01-01 12:00:00 IST", "Asia/Jerusalem", "2026-01-01 10:00:00"),
    ("2026-11-01 01:30:00 PDT", LOS_ANGELES, "2026-11-01 08:30:00"),  # the clock shows this hour twice
    ("2026-11-01 01:30:00 PST", LOS_ANGELES, "2026-11-01 09:30:00"),
    ("2026-11-01 01:30:00 America/Los_Angeles", "", "2026-11-01 08:30:00"),
]
REFUSED = [
    # text, the course's zone, and what is said
    *((text, "", "is not a time such as 2026-03-01 12:00:00 UTC") for text in (
        *("yesterday", "12:00", "2026-03-01", "1772366400", "Sun Mar  1 12:00:00 2026", "1 March 2026 12:00"),
        *("03.11.2026 12:00", "03/11/2026 12:00", "11-03-2026 12:00", "2026/03/11 12:00", "2026-3-1 12:00"),
        *("2026-02-30 12:00", "2026-03-01 25:00", "2026-03-01 12.5", "2026-03-01 12:00 PM UTC", "2026-03-01 1:00"),
        *("2026-03-01 12:00 +99:00", "0001-01-01 00:00 +14:00", "9999-12-31 23:59 -14:00", "\ufffd", "1" * 10**6),
        *("\u0662\u0660\u0662\u0666-03-01 12:00", "2026-03-01 12:00 UTC x"),
    )),
    ("2026-03-01 12:00 Nowhere/AtAll", "", "names no time zone that is known"),
    *((f"2026-03-01 12:00 {zone}", "", "is not certain: write an offset such as -08:00") for zone in (
        *("PST", "EST", "CET", "AM", "UTC+1", "America/", "Etc/../../../etc/passwd", "Z" * 10**6),
    )),
    ("2026-07-01 12:00 PST", LOS_ANGELES, "since America/Los_Angeles (c.Exchange.timezone) has no such abbreviation"),
    ("2026-03-01 12:00 PST", BERLIN, "since Europe/Berlin (c.Exchange.timezone) has no such abbreviation at that"),
    ("2026-03-01 12:00 PST", "Nowhere", "since Nowhere (c.Exchange.timezone) has no such abbreviation at that time"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "zone", "moment"), READ, ids=[f"{text.strip()} {zone}" for text, zone, _ in READ])
def test_times_that_are_read(text: str, zone: str, moment: str) -> None:
    assert read_time(text, zone) == read_time(text.encode(), zone) == datetime.fromisoformat(moment)


@pytest.mark.parametrize(("text", "zone", "said"), REFUSED, ids=[f"{text[:40]} {zone}" for text, zone, _ in REFUSED])
def test_times_that_are_refused(text: str, zone: str, said: str) -> None:
    with pytest.raises(NoTimeError) as raised:
        read_time(text, zone)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 320
    assert str(raised.value).isprintable()


def test_an_empty_text_is_no_time_and_not_wrong() -> None:
    assert read_time("") is read_time(b" \n") is None


@pytest.mark.parametrize("text", [text for text, _, _ in READ if text.endswith(("UTC", "Z", "America/Los_Angeles"))])
@pytest.mark.filterwarnings("ignore")
def test_what_nbgrader_reads_rightly_is_the_same(text: str) -> None:
    assert read_time(text) == parse_utc(text)


def test_the_zone_of_a_course_is_that_of_its_exchange() -> None:
    assert zone_of(Config()) == ""
    assert zone_of(Config({"Exchange": {"timezone": BERLIN}})) == BERLIN
    assert zone_of(Config({"Exchange": {"timezone": "UTC"}, "ExchangeSubmit": {"timezone": BERLIN}})) == BERLIN


def test_a_time_is_shown_with_its_zone() -> None:
    assert shown_time(datetime(2026, 3, 1, 9, 5, 7, 999)) == "2026-03-01 09:05:07 UTC"
