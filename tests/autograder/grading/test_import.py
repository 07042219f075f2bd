"""`autograder import`: downloads from Canvas and Moodle, and archives made with malicious intent."""

import errno
import io
import json
import os
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.cli import main
from autograder.grading.lms import archives, importing
from autograder.grading.lms.names import readings

LESSON = "02_scalar"
BEE, COD = (
    b'{"cells": [], "metadata": {"of": "%s"}, "nbformat": 4, "nbformat_minor": 5}' % name for name in (b"bee", b"cod")
)
JUNK = b"\0\5\x16\7"  # how a file begins in which macOS keeps attributes of another file


@pytest.fixture(scope="module")
def empty_course(tmp_path_factory):
    """A course with one notebook and four students; the LMS numbers of the first two are known."""
    root = tmp_path_factory.mktemp("course")
    source = root / "source" / LESSON
    source.mkdir(parents=True)
    (source / f"{LESSON}.ipynb").write_text(json.dumps({"cells": []}))
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        gradebook.add_student("bee", first_name="Bea", last_name="Ekström", lms_user_id="101")
        gradebook.add_student("cod", first_name="Carl", last_name="Odd", lms_user_id="102", email="cod@example.org")
        gradebook.add_student("twin1", first_name="Sam", last_name="Twin")
        gradebook.add_student("twin2", first_name="Sam", last_name="Twin", email="twin2@example.org")
    return root


@pytest.fixture
def course(empty_course, tmp_path):
    """A copy of the course for one test."""
    return Path(shutil.copytree(empty_course, tmp_path / "course"))


def packed(course, members):
    """An archive of (name, content) pairs, or of ready ZipInfos."""
    path = course.parent / "download.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


def imported(course, members, *options):
    """The exit status of an import, and the files in `submitted/` afterwards."""
    status = main(["import", LESSON, str(packed(course, members)), "--course", str(course), *map(str, options)])
    return status, handed_in(course)


def handed_in(course):
    folder = course / "submitted"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def of(student, name=f"{LESSON}.ipynb"):
    return f"{student}/{LESSON}/{name}"


ORDINARY = {
    "canvas": [("ekstrombea_101_7001_02_scalar.ipynb", BEE), ("oddcarl_LATE_102_7002_02_scalar-1.ipynb", COD)],
    "canvas, anonymous": [("101_7001_02_scalar.ipynb", BEE), ("LATE_102_7002_02_scalar (2).ipynb", COD)],
    "canvas, other names": [("ekstrombea_101_1_my homework.ipynb", BEE), ("oddcarl_102_2_Untitled.ipynb", COD)],
    "moodle": [
        ("Bea Ekström_900_assignsubmission_file/02_scalar.ipynb", BEE),
        ("Carl Odd_901_assignsubmission_file_/02_scalar.ipynb", COD),
    ],
    "moodle, flat": [
        ("Bea Ekström_900_assignsubmission_file_02_scalar.ipynb", BEE),
        ("Carl Odd_901_assignsubmission_file_02_scalar.ipynb", COD),
    ],
}


@pytest.mark.parametrize("kind", ORDINARY)
def test_a_download_becomes_submissions(kind, course, capsys):
    status, found = imported(course, ORDINARY[kind])
    assert (status, found) == (0, {of("bee"): BEE, of("cod"): COD})
    out = capsys.readouterr().out
    assert out.startswith(f"{kind.partition(',')[0].capitalize()}: 2 submissions taken")
    assert ("Canvas marks this as late" in out) == any("LATE" in name for name, _ in ORDINARY[kind])


def zipped(members):
    """The bytes of an archive that a student uploads."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return content.getvalue()


UPLOADED = {
    "as pack() makes it": ({"01_first/01_first.ipynb": COD, f"{LESSON}/{LESSON}.ipynb": BEE}, {f"{LESSON}.ipynb": BEE}),
    "with an engine": (
        {f"{LESSON}/{LESSON}.ipynb": BEE, f"{LESSON}/engine.py": b"x = 1"},
        {f"{LESSON}.ipynb": BEE, "engine.py": b"x = 1"},
    ),
    "by hand, on macOS": ({f"{LESSON}/{LESSON}.ipynb": BEE, f"__MACOSX/{LESSON}/._x": JUNK}, {f"{LESSON}.ipynb": BEE}),
    "with a name that leads outside": (
        {f"{LESSON}/../../../x.ipynb": COD, f"{LESSON}/{LESSON}.ipynb": BEE},
        {f"{LESSON}.ipynb": BEE},
    ),
}


@pytest.mark.parametrize("kind", UPLOADED)
@pytest.mark.parametrize("name", ["ekstrombea_101_7001_{}", "Bea Ekström_900_assignsubmission_file/{}"])
def test_an_uploaded_archive_stands_for_what_is_in_its_folder_of_the_assignment(kind, name, course):
    uploaded, files = UPLOADED[kind]
    assert imported(course, [(name.format("lessons-1.zip"), zipped(uploaded))]) == (
        0,
        {of("bee", file): content for file, content in files.items()},
    )


@pytest.mark.parametrize("content", [b"PK", zipped({"01_first/01_first.ipynb": COD})], ids=["damaged", "other lessons"])
def test_an_uploaded_archive_without_the_assignment_is_an_ordinary_file(content, course, capsys):
    assert imported(course, [("ekstrombea_101_7001_lessons.zip", content)]) == (1, {})
    assert "not imported: bee: there is no notebook among the files" in capsys.readouterr().out


def test_a_name_counts_where_no_number_is_known_and_not_against_a_number(course, capsys):
    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        gradebook.add_student("dee", first_name="Dee", last_name="O'Fín")
        gradebook.add_student("ofindee", first_name="An", last_name="Other")
    members = [("ofindee_900_1_02_scalar.ipynb", COD), ("ekstrombea_901_2_02_scalar.ipynb", BEE)]
    assert imported(course, members) == (1, {of("dee"): COD})
    assert "not imported: ekstrombea (number 901)" in capsys.readouterr().out


def test_a_participant_of_moodle_is_not_the_user_of_the_same_number(course):
    assert imported(course, [("Nobody Here_101_assignsubmission_file/02_scalar.ipynb", BEE)]) == (1, {})


@pytest.mark.parametrize("platform", ["canvas", "moodle"])
def test_what_to_do_about_unknown_numbers_is_said(platform, course, capsys):
    table, _, _ = ROSTERS[platform]
    name = {"canvas": "x_999_1_02_scalar.ipynb", "moodle": "X Y_999_assignsubmission_file/02_scalar.ipynb"}[platform]
    roster = course.parent / "roster.csv"
    roster.write_text(table)
    source = {"canvas": "the gradebook that Canvas exports", "moodle": "the assignment's grading worksheet from Moodle"}
    imported(course, [(name, BEE)])
    assert f"Add --roster FILE.csv, {source[platform]}: it says which number is whose." in capsys.readouterr().out
    imported(course, [(name, BEE)], "--roster", roster)
    assert f"does not say who they are: take {source[platform]} as it is now" in capsys.readouterr().out


def test_no_roster_is_asked_for_where_all_are_known(course, capsys):
    imported(course, [("a_101_1_notes.txt", b"no notebook")])
    assert "--roster" not in capsys.readouterr().out


def test_a_time_written_beside_a_submission_makes_no_other_one_of_it(course):
    first = [("a_101_1_02_scalar.ipynb", BEE)]
    assert imported(course, first)[0] == 0
    time = course / "submitted" / "bee" / LESSON / "timestamp.txt"
    time.write_text("2026-03-01 12:00:00 UTC\n")
    assert imported(course, first)[0] == 0
    assert time.is_file()


def test_a_submission_that_replaces_one_has_not_its_time(course, capsys):
    assert imported(course, [("a_101_1_02_scalar.ipynb", BEE)])[0] == 0
    time = course / "submitted" / "bee" / LESSON / "timestamp.txt"
    time.write_text("2026-03-01 12:00:00 UTC\n")
    assert imported(course, [("a_101_2_02_scalar.ipynb", COD)], "--replace") == (0, {of("bee"): COD})
    said = capsys.readouterr().out
    assert f"bee: the time of the submission before does not count for this one. Write its own into {time}" in said


def test_importing_again_changes_nothing_and_another_file_is_kept_beside(course, capsys):
    first = [("a_101_1_02_scalar.ipynb", BEE)]
    other = [("a_101_2_02_scalar.ipynb", COD)]
    assert imported(course, first)[0] == 0
    assert "Canvas: 1 submission taken, 0 the same" in capsys.readouterr().out
    assert imported(course, first) == (0, {of("bee"): BEE})
    assert "0 submissions taken, 1 the same" in capsys.readouterr().out
    assert imported(course, other) == (1, {of("bee"): BEE})
    assert "--replace takes it" in capsys.readouterr().out
    assert imported(course, other, "--replace") == (0, {of("bee"): COD})
    assert (course / "replaced" / LESSON / "bee" / "1" / f"{LESSON}.ipynb").read_bytes() == BEE


def test_of_two_files_with_the_notebooks_name_the_later_one_counts(course, capsys):
    members = [("a_101_8_02_scalar-1.ipynb", COD), ("a_101_7_02_scalar.ipynb", BEE)]
    assert imported(course, members) == (0, {of("bee"): COD})
    assert "the later one is taken" in capsys.readouterr().out


MADE_BY_SYSTEMS = [
    *("__MACOSX/{}", "__MACOSX/x/._{}", "._{}", "x/._{}", "x/__macosx/{}", "x/.AppleDouble/{}", ".~{}", "~${}"),
    *("{}:Zone.Identifier", "$RECYCLE.BIN/{}", "x/@eaDir/{}", ".DS_Store", "x/Thumbs.db", "desktop.ini", "x/Icon\r"),
]


@pytest.mark.parametrize("kind", ORDINARY)
@pytest.mark.parametrize("folder", ["", "x/", "submissions of ps1/all/"])
@pytest.mark.parametrize("first", [True, False], ids=["junk first", "junk last"])
def test_a_download_that_was_packed_again_is_the_same(kind, folder, first, course, capsys):
    """Finder puts a file of its own beside each one; its name has the same numbers."""
    good = [(folder + name, content) for name, content in ORDINARY[kind]]
    junk = {made.format(name): JUNK for made in MADE_BY_SYSTEMS for name, _ in ORDINARY[kind]}.items()
    status, found = imported(course, [*junk, *good] if first else [*good, *junk])
    assert (status, found) == (0, {of("bee"): BEE, of("cod"): COD})
    said = capsys.readouterr().out
    assert f"left out {len(junk)} files that an operating system has added, such as " in said
    assert said.count("left out") == 1


def test_a_folder_with_backslashes_is_a_folder(course):
    """As some programs for Windows write it."""
    moodle = [(name.replace("/", "\\"), content) for name, content in ORDINARY["moodle"]]
    members = [("submissions\\", b""), *((f"submissions\\{name}", content) for name, content in moodle)]
    assert imported(course, members) == (0, {of("bee"): BEE, of("cod"): COD})


BEFORE_JUNK = {
    "a later file": [("a_101_7_02_scalar.ipynb", BEE), ("a_101_8_02_scalar-1.ipynb", JUNK)],
    "an earlier file": [("a_101_7_02_scalar.ipynb", JUNK), ("a_101_8_02_scalar-1.ipynb", BEE)],
    "a later file with nothing in it": [("a_101_7_02_scalar.ipynb", BEE), ("a_101_8_02_scalar.ipynb", b"")],
    "a file of the same name": [("a_101_7_02_scalar.ipynb", JUNK), ("a_101_7_02_scalar.ipynb", BEE)],
    "a file of the same name, but later": [("a_101_7_02_scalar.ipynb", BEE), ("a_101_7_02_scalar.ipynb", JUNK)],
    "a name in capitals": [("a_101_7_02_SCALAR.ipynb", BEE), ("a_101_8_02_scalar.ipynb", JUNK)],
    "the notebook under another name": [("a_101_7_mine.ipynb", BEE), ("a_101_8_02_scalar.ipynb", JUNK)],
    "two other names": [("a_101_7_mine.ipynb", BEE), ("a_101_8_draft.ipynb", JUNK)],
    "in Moodle": [
        ("Bea Ekström_1_assignsubmission_file/02_scalar.ipynb", BEE),
        ("Bea Ekström_1_assignsubmission_file/02_scalar (1).ipynb", JUNK),
    ],
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", BEFORE_JUNK)
def test_a_notebook_counts_before_anything_else(kind, course, capsys):
    status, found = imported(course, BEFORE_JUNK[kind])
    assert (status, found[of("bee")]) == (0, BEE)
    assert "left out" in capsys.readouterr().out or kind == "two other names"


@pytest.mark.parametrize("name", ["cafe\u0301", "caf\u00e9", "CAF\u00c9", "caf\u00e9-1", "cafe\u0301 (2)"])
def test_a_notebook_is_known_however_a_system_writes_its_name(name, course):
    wanted = "cafe\u0301.ipynb"  # as macOS writes an accent
    shutil.copy(course / "source" / LESSON / f"{LESSON}.ipynb", course / "source" / LESSON / wanted)
    assert imported(course, [(f"a_101_1_{name}.ipynb", BEE)]) == (0, {of("bee", wanted): BEE})


def test_of_two_files_that_are_no_notebooks_the_later_one_counts(course):
    members = [("a_101_8_02_scalar-1.ipynb", JUNK), ("a_101_7_02_scalar.ipynb", b"")]
    assert imported(course, members) == (0, {of("bee"): JUNK})


@pytest.mark.parametrize("options", [[], ["--replace"]])
def test_a_file_that_is_no_notebook_replaces_none(options, course, capsys):
    assert imported(course, [("a_101_1_02_scalar.ipynb", BEE)])[0] == 0
    (course / "submitted" / "bee" / LESSON / ".DS_Store").write_bytes(JUNK)
    assert imported(course, [("a_101_1_02_scalar.ipynb", BEE)], *options)[0] == 0
    capsys.readouterr()
    status, found = imported(course, [("a_101_2_02_scalar.ipynb", JUNK), ("b_102_1_02_scalar.ipynb", COD)], *options)
    assert (status, found[of("bee")], found[of("cod")]) == (1, BEE, COD)
    said = capsys.readouterr().out
    assert (
        "not imported: bee: 02_scalar.ipynb is not a notebook, and the one before is (The file is not valid JSON"
        in said
    )
    assert not (course / "replaced").exists()


@pytest.mark.parametrize("name", ["LATE_102_7002_x.ipynb", "102_7002_x.ipynb", "oddcarl_LATE_102_7002_x.ipynb"])
def test_what_canvas_says_is_read_inside_a_folder_too(name):
    ((inside,), (alone,)) = readings(f"a_b/{name}", "canvas"), readings(name, "canvas")
    assert (inside.name, inside.late, inside.file, inside.outer) == (alone.name, alone.late, alone.file, "a_b/")


ROSTERS = {
    "canvas": (
        "Student,ID,SIS Login ID,Section\nPoints Possible,,,\n'Twin, Sam',555,twin1,A\n",
        [("twinsam_555_1_02_scalar.ipynb", BEE)],
        "twin1",
    ),
    "moodle": (
        "\ufeffIdentifier,Full name,Email address\nParticipant 556,Sam Twin,twin2@example.org\n",
        [("Sam Twin_556_assignsubmission_file/02_scalar.ipynb", BEE)],
        "twin2",
    ),
}


@pytest.mark.parametrize("platform", ROSTERS)
def test_two_of_one_name_are_told_apart_by_a_roster_and_never_guessed(platform, course, capsys):
    table, members, student = ROSTERS[platform]
    assert imported(course, members) == (1, {})
    assert "not imported: " in capsys.readouterr().out
    roster = course.parent / "roster.csv"
    roster.write_text(table.replace("'Twin, Sam'", '"Twin, Sam"'), encoding="utf-8")
    assert imported(course, members, "--roster", roster) == (0, {of(student): BEE})


def test_one_bad_upload_costs_only_its_student(course, capsys):
    members = [
        ("Bea Ekström_1_assignsubmission_file/notes.txt", b"no notebook"),
        ("Bea Ekström_1_assignsubmission_onlinetext.html", b"text"),
        ("Carl Odd_2_assignsubmission_file/02_scalar.ipynb", COD),
        ("Nobody Here_3_assignsubmission_file/02_scalar.ipynb", BEE),
    ]
    assert imported(course, members) == (1, {of("cod"): COD})
    out = capsys.readouterr().out
    assert "bee: there is no notebook" in out
    assert "Nobody Here (number 3)" in out
    assert "text typed in Moodle is not a notebook" in out


def test_two_people_who_are_taken_for_one_student_are_not_mixed(course):
    members = [
        ("Bea Ekström_1_assignsubmission_file/02_scalar.ipynb", BEE),
        ("Bea Ekstrom_2_assignsubmission_file/02_scalar.ipynb", COD),
    ]
    assert imported(course, members) == (1, {})


@pytest.mark.parametrize(
    ("member", "owner"),
    [
        ("agent101_102_9005_02_scalar.ipynb", "cod"),
        ("agent101_777_9005_02_scalar.ipynb", None),
        ("x_101_7_900_9005_02_scalar.ipynb", "bee"),
        ("x_101_7_102_9005_02_scalar.ipynb", None),
        ("x_900_102_10_scalar.ipynb", None),
        ("101_7_x/102_8_scalar.ipynb", None),
        ("ps1_2026_11_03/x_101_7_scalar.ipynb", "bee"),
        ("Bea Ekström_3_assignsubmission_file/Carl Odd_4_assignsubmission_file/02_scalar.ipynb", "bee"),
        ("Nobody_3_assignsubmission_pdf/Carl Odd_4_assignsubmission_file/02_scalar.ipynb", None),
        ("Nobody_3_assignsubmission_file_x_101_assignsubmission_file_02_scalar.ipynb", None),
        ("Bea Ekström_3_assignsubmission_file_Carl Odd_4_assignsubmission_file_02_scalar.ipynb", "bee"),
    ],
)
def test_no_number_in_a_name_makes_it_another_students(member, owner, course, capsys):
    status, found = imported(course, [(member, BEE)])
    assert (bool(status), {name.partition("/")[0] for name in found}) == (owner is None, {owner} - {None})
    assert ("fits more than one student" in capsys.readouterr().out) == (
        member[:4] in ("x_10", "x_90", "101_") and not owner
    )


@pytest.mark.parametrize(
    ("member", "platform"),
    [
        ("Bea Ekström_3_assignsubmission_onlinetext_/onlinetext.html", "Moodle"),
        ("ekstrom-xbea_101_text.html", "Canvas"),
        ("ekstrombea_LATE_101_link.html", "Canvas"),
    ],
)
def test_a_student_who_only_typed_text_is_named(member, platform, course, capsys):
    assert imported(course, [(member, b"text")]) == (1, {})
    out = capsys.readouterr().out
    assert f"bee: left out {member}: text typed in {platform} is not a notebook" in out
    assert "not imported: bee: there is no notebook" in out


@pytest.mark.parametrize(("wanted", "kind"), [("canvas", "moodle"), ("moodle", "canvas")])
def test_an_archive_of_the_other_platform_is_refused(wanted, kind, course, capsys):
    assert imported(course, ORDINARY[kind], "--from", wanted) == (2, {})
    assert (
        f"By the names of its files, the archive is from {kind.capitalize()}, so --from {wanted}"
        in capsys.readouterr().err
    )


def test_faults_of_the_machine_are_not_blamed_on_the_archive(course, capsys, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(course))

    monkeypatch.setattr(importing, "swap_folders", full)
    assert imported(course, ORDINARY["canvas"])[0] == 2
    assert capsys.readouterr().err == f"autograder import: No space left on device: {course}.\n"


def test_a_course_without_a_gradebook_gets_none_and_is_named(course, capsys):
    (course / "gradebook.db").unlink()
    assert imported(course, ORDINARY["canvas"]) == (1, {})
    assert f"0 the same as before, in {course}\n" in capsys.readouterr().out
    assert not (course / "gradebook.db").exists()


WORKSHEET = ROSTERS["moodle"][0]
UNUSABLE = {
    "Latin-1": (WORKSHEET[1:].replace("Sam", "Zoë").encode("latin-1"), "is not in UTF-8, as Excel may have saved it."),
    "UTF-16": (WORKSHEET.encode("utf-16"), "is not in UTF-8, as Excel may have saved it."),
    "a workbook": (b"PK\x03\x04\x14\x00", "is an Excel workbook or a zip archive, not a CSV file."),
    "nothing": (b"\n\n", "is empty."),
    "Spanish": (b"Identificador,Nombre completo\n", "In another language, its columns have other names"),
    "of Canvas": (ROSTERS["canvas"][0].encode(), "has no column Identifier: take the assignment's grading worksheet"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_what_to_do_about_an_unusable_roster_is_said(kind, course, capsys):
    content, said = UNUSABLE[kind]
    roster = course.parent / "roster.csv"
    roster.write_bytes(content)
    assert imported(course, ORDINARY["moodle"], "--roster", roster) == (2, {})
    assert f"{roster} {said}" in (err := capsys.readouterr().err) or said in err
    assert "CSV UTF-8" in err or "take the assignment's grading worksheet from Moodle" in err


def linked(name, target):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, target


PERSON = "Bea Ekström_1_assignsubmission_file"
GOOD = (f"{PERSON}/02_scalar.ipynb", BEE)
HOSTILE = {
    "out of the folder": [(f"{PERSON}/../../../evil.ipynb", COD)],
    "absolute": [("/tmp/evil_101_1_x.ipynb", COD)],
    "absolute inside": [(f"{PERSON}//tmp/evil.ipynb", COD)],
    "a drive": [("C:evil_101_1_x.ipynb", COD)],
    "backslashes": [(f"{PERSON}/..\\..\\evil.ipynb", COD)],
    "a dot": [(f"{PERSON}/./02_scalar.ipynb", COD)],
    "a link": [linked(f"{PERSON}/secret.ipynb", "/etc/passwd")],
    "a device": [(f"{PERSON}/a\x00b.ipynb".replace("\x00", "\x07"), COD)],
    "a terminal": [(f"{PERSON}/\x1b[2Jx.ipynb", COD)],
    "a very long name": [(f"{PERSON}/{'x' * 300}.ipynb", COD)],
    "names that differ in case": [(f"{PERSON}/02_SCALAR.ipynb", COD)],
    "names that differ in composition": [(PERSON.replace("ö", "o\u0308") + "/02_scalar.ipynb", COD)],
    "a checkpoint": [(f"{PERSON}/.ipynb_checkpoints/02_scalar-checkpoint.ipynb", COD)],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_member_is_left_out_and_writes_nothing(kind, course, capsys):
    before = {path for path in course.parent.rglob("*") if "submitted" not in path.parts}
    status, found = imported(course, [GOOD, *HOSTILE[kind]])
    assert (status, found) == (0, {of("bee"): BEE})
    after = {path for path in course.parent.rglob("*") if "submitted" not in path.parts}
    assert {path.name for path in after - before} <= {"download.zip"}
    assert "\x1b" not in capsys.readouterr().out


def test_a_bomb_is_not_unpacked(course, capsys):
    (course / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.max_file_size = 50\n")
    members = [
        (f"{PERSON}/02_scalar.ipynb", b" " * 5_000_000),
        ("Carl Odd_2_assignsubmission_file/02_scalar.ipynb", COD),
    ]
    assert imported(course, members) == (1, {of("cod"): COD})
    assert "bee: it is larger than 0 MB (CourseDirectory.max_file_size)" in capsys.readouterr().out


def test_a_size_that_is_a_lie_is_found_while_reading(course):
    path = packed(course, [(f"{PERSON}/02_scalar.ipynb", b"x" * 10_000)])
    data = path.read_bytes()
    path.write_bytes(data.replace((10_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    assert main(["import", LESSON, str(path), "--course", str(course)]) == 1
    assert handed_in(course) == {}


def test_a_file_that_is_a_folder_of_another_costs_only_its_student(course):
    members = [(f"{PERSON}/a.ipynb", BEE), (f"{PERSON}/a.ipynb/02_scalar.ipynb", BEE)]
    status, found = imported(course, [*members, ("Carl Odd_2_assignsubmission_file/02_scalar.ipynb", COD)])
    assert (status, found) == (1, {of("cod"): COD})


def test_what_is_no_archive_or_of_no_platform_is_refused(course, capsys, monkeypatch):
    text = course.parent / "text.zip"
    text.write_text("no archive")
    refused = {text: "File is not a zip file. Download it again.", course: f"{course} is a folder"}
    for path, said in {**refused, course / "none.zip": "There is no file"}.items():
        assert main(["import", LESSON, str(path), "--course", str(course)]) == 2
        assert said in capsys.readouterr().err
    assert imported(course, [("photo.jpg", b"")])[0] == 2
    assert "named the way Canvas or Moodle names submissions" in capsys.readouterr().err
    for folder in ("", "x/"):
        assert imported(course, [(f"{folder}anon_Ab3xY_101_10_scalar.ipynb", BEE)]) == (2, {})
        assert "Canvas does not say whose they are while grading is anonymous." in capsys.readouterr().err
    assert main(["import", "99_none", str(packed(course, [GOOD])), "--course", str(course)]) == 2
    assert "no assignment '99_none'" in capsys.readouterr().err
    monkeypatch.setattr(archives, "MOST_MEMBERS", 1)
    assert imported(course, [GOOD, (f"{PERSON}/b.txt", b"")])[0] == 2
    assert "more than 1 files" in capsys.readouterr().err


def test_a_student_of_the_roster_leads_nowhere_else(course):
    roster = course.parent / "roster.csv"
    roster.write_text("Student,ID,SIS Login ID\nx,555,../../evil\ny,556,.hidden\nz,557,=1+1\n")
    members = [(f"a_{number}_1_02_scalar.ipynb", BEE) for number in (555, 556, 557)]
    assert imported(course, members, "--roster", roster) == (1, {of("=1+1"): BEE})
    assert not (course.parent / "evil").exists()


@pytest.mark.parametrize(
    ("member", "key", "file"),
    [
        ("doejane_12_34_a_5_b.ipynb", "12", "a_5_b.ipynb"),
        ("12_34_x.ipynb", "12", "x.ipynb"),
        ("group_one_LATE_12_34_x.ipynb", "12", "x.ipynb"),
        ("agent510_504_9005_02_x.ipynb", "504", "02_x.ipynb"),
        ("student2_LATE_504_9005_x.ipynb", "504", "x.ipynb"),
    ],
)
def test_the_numbers_of_canvas_are_found_beside_underscores(member, key, file):
    (upload,) = readings(member, "canvas")
    assert (upload.key, upload.file) == (key, file)
    assert Path(file).suffix == ".ipynb"
