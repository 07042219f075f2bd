"""A gradebook in memory, which holds one assignment and, while it is graded, one submission.

nbgrader's preprocessors find what they need in a gradebook and write marks into it. In a worker, they get this one: no
other process sees it, it never touches a disk, and all of them share one engine, whereas nbgrader would open the
database nine times per submission.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nbgrader.api import Base, Gradebook
from sqlalchemy import create_engine, delete, insert
from sqlalchemy.orm import scoped_session, sessionmaker
from sqlalchemy.pool import StaticPool

URL = "autograder-private://"  # what nbgrader's classes are told; only `opened` understands it
SUBMISSION_TABLES = ("comment", "grade", "submitted_notebook", "submitted_assignment", "student")


class PrivateGradebook:
    """The database. `opened()` makes nbgrader's `Gradebook` use it."""

    def __init__(self, rows: Mapping[str, list[dict[str, Any]]]) -> None:
        self.engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        Base.metadata.create_all(self.engine)
        with self.engine.begin() as connection:
            for table in Base.metadata.sorted_tables:
                if rows.get(table.name):
                    connection.execute(insert(table), rows[table.name])

    def clear(self) -> None:
        """Forget the submission."""
        with self.engine.begin() as connection:
            for name in SUBMISSION_TABLES:
                connection.execute(delete(Base.metadata.tables[name]))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Within the context, a `Gradebook` with the private URL uses this database. Others work as usual."""
        open_any, close_any = Gradebook.__init__, Gradebook.close

        def open_this(
            gradebook: Any, db_url: str, course_id: str = "default_course", authenticator: Any = None
        ) -> None:
            if db_url != URL:
                open_any(gradebook, db_url, course_id, authenticator)
                return
            gradebook.engine = self.engine
            gradebook.db = scoped_session(sessionmaker(autoflush=True, bind=self.engine, future=True))
            gradebook.course_id, gradebook.authenticator = course_id, authenticator

        def close_this(gradebook: Any) -> None:
            if gradebook.engine is self.engine:
                gradebook.db.remove()
            else:
                close_any(gradebook)

        Gradebook.__init__, Gradebook.close = open_this, close_this
        try:
            yield
        finally:
            Gradebook.__init__, Gradebook.close = open_any, close_any
