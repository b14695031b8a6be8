"""What one SQLite file holds for a store, and the statements on it.

Each function is one statement or one transaction on a connection, so it happens wholly or not at all; the
caller tells it the time. Nothing here sleeps, and SQLite's errors pass through.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bridge.errors import ConfigurationError
from bridge.stores.base import LogEntry, LogPage, Record
from bridge.stores.file_systems import check_file_system

__all__ = [
    "append",
    "change",
    "count",
    "get",
    "look",
    "news",
    "open_file",
    "put",
    "read",
    "reserve_versions",
    "scan",
    "sweep",
    "take",
]

SCHEMA_VERSION = 1
# `expires` is infinite for ever. `due` is at or before it, and says when a sweep has to look: a renewal leaves
# it alone, which spares the index. AUTOINCREMENT ids show who looks for news what came after the last look.
SCHEMA = """
CREATE TABLE versions (used INTEGER NOT NULL);
INSERT INTO versions VALUES (0);
CREATE TABLE records (
    key TEXT PRIMARY KEY, version INTEGER NOT NULL,
    due REAL NOT NULL, expires REAL NOT NULL, value BLOB NOT NULL);
CREATE INDEX records_due ON records (due);
CREATE TABLE logs (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, first INTEGER NOT NULL, last INTEGER NOT NULL,
    due REAL NOT NULL, expires REAL NOT NULL);
CREATE INDEX logs_due ON logs (due);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, log INTEGER NOT NULL REFERENCES logs ON DELETE CASCADE,
    seq INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE (log, seq));
"""

PUT = """
INSERT INTO records (key, version, due, expires, value) SELECT ?1, ?2, ?3, ?3, ?4
WHERE ?5 IS NULL OR ?5 = coalesce((SELECT version FROM records WHERE key = ?1 AND expires > ?6), 0)
ON CONFLICT (key) DO UPDATE SET version = excluded.version, due = min(due, excluded.due),
    expires = excluded.expires, value = excluded.value
"""
READ = """
SELECT logs.first, logs.last, entries.seq, entries.value FROM logs
LEFT JOIN entries ON entries.log = logs.id AND entries.seq > ?
WHERE logs.name = ? AND logs.expires > ? ORDER BY entries.seq LIMIT ?
"""
RENEW_LOG = "UPDATE logs SET first = ?1, last = ?2, due = min(due, ?3), expires = ?3 WHERE id = ?4"
# The `+` keeps SQLite from walking the whole index of entries to have them grouped.
NEWS = """
SELECT logs.name, max(entries.id) FROM entries JOIN logs ON logs.id = entries.log
WHERE entries.id > ? GROUP BY +entries.log
"""
# `0` is the character after `/`: between the two are exactly the keys of a family.
SCAN = "SELECT key FROM records WHERE key >= ? AND key < ? AND expires > ? ORDER BY key LIMIT ?"
# All keys come from the index alone; what is over and not yet swept is little, and found by `due`.
COUNT = """
SELECT (SELECT count(*) FROM records WHERE key >= ?1 AND key < ?2)
    - (SELECT count(*) FROM records WHERE due <= ?3 AND expires <= ?3 AND +key >= ?1 AND +key < ?2)
"""
ANYTHING_DUE = """
SELECT EXISTS (SELECT 1 FROM records WHERE due <= ?1) OR EXISTS (SELECT 1 FROM logs WHERE due <= ?1)
"""
# Each changes a bounded number of rows; a log goes once its entries are gone.
SWEEPS = (
    """DELETE FROM records WHERE expires <= ?1 AND key IN
       (SELECT key FROM records WHERE due <= ?1 ORDER BY due LIMIT ?2)""",
    """UPDATE records SET due = expires WHERE key IN
       (SELECT key FROM records WHERE due <= ?1 ORDER BY due LIMIT ?2)""",
    """DELETE FROM entries WHERE id IN (SELECT entries.id FROM logs CROSS JOIN entries ON entries.log = logs.id
       WHERE logs.due <= ?1 AND logs.expires <= ?1 ORDER BY logs.due LIMIT ?2)""",
    """DELETE FROM logs WHERE id IN (SELECT id FROM logs WHERE due <= ?1 ORDER BY due LIMIT ?2)
       AND expires <= ?1 AND NOT EXISTS (SELECT 1 FROM entries WHERE log = logs.id)""",
    """UPDATE logs SET due = expires WHERE expires > ?1 AND id IN
       (SELECT id FROM logs WHERE due <= ?1 ORDER BY due LIMIT ?2)""",
)


def open_file(path: Path, wait_seconds: float) -> sqlite3.Connection:
    """Open the file, made where it is missing; afterwards the connection never waits for other processes."""
    check_file_system(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives its side files the same mode
    db = sqlite3.connect(path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)
    try:
        _switch_to_wal(db, path, wait_seconds)
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        _migrate(db, path)
        db.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        db.close()
        raise
    return db


def _switch_to_wal(db: sqlite3.Connection, path: Path, wait_seconds: float) -> None:
    """SQLite does not wait here: two processes that make the file at once find it locked."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise ConfigurationError(
                    f"{path}: its file system shares no memory between processes; use a local disk"
                )
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    with db:
        db.execute("BEGIN IMMEDIATE")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise ConfigurationError(
                f"{path} has the schema {version} of a newer mcp-session-bridge; this one knows"
                f" {SCHEMA_VERSION}: upgrade it, or give it another file"
            )
        if version == 0:
            for statement in SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _one(db: sqlite3.Connection, sql: str, *values: object) -> Any:
    return db.execute(sql, values).fetchone()


def get(db: sqlite3.Connection, now: float, key: str) -> Record | None:
    """Return the record under `key`."""
    row = _one(db, "SELECT value, version FROM records WHERE key = ? AND expires > ?", key, now)
    return None if row is None else Record(*row)


def put(
    db: sqlite3.Connection,
    now: float,
    key: str,
    value: bytes,
    version: int,
    ttl_seconds: float,
    if_version: int | None,
) -> bool:
    """Write a record under a version that was reserved; return whether `if_version` let it."""
    return db.execute(PUT, (key, version, now + ttl_seconds, value, if_version, now)).rowcount > 0


def reserve_versions(db: sqlite3.Connection, number: int) -> int:
    """Take the next `number` versions out of use; return the last one used before them."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        (used,) = _one(db, "SELECT used FROM versions")
        db.execute("UPDATE versions SET used = ?", (used + number,))
        return int(used)


def take(db: sqlite3.Connection, now: float, key: str) -> bytes | None:
    """Remove the record under `key` and return its value."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        record = get(db, now, key)
        if record is None:
            return None
        db.execute("DELETE FROM records WHERE key = ?", (key,))
        return record.value


def append(db: sqlite3.Connection, now: float, log: str, value: bytes, ttl_seconds: float, max_entries: int) -> int:
    """Append to `log`, trim it, and return the number of the new entry."""
    expires = now + ttl_seconds
    with db:
        db.execute("BEGIN IMMEDIATE")
        row = _one(db, "SELECT id, first, last FROM logs WHERE name = ? AND expires > ?", log, now)
        log_id, first, last = row or _new_log(db, log, expires)
        seq = last + 1
        kept_from = max(first, seq - max_entries + 1)
        db.execute("INSERT INTO entries (log, seq, value) VALUES (?, ?, ?)", (log_id, seq, value))
        if kept_from > first:
            db.execute("DELETE FROM entries WHERE log = ? AND seq < ?", (log_id, kept_from))
        db.execute(RENEW_LOG, (kept_from, seq, expires, log_id))
        return int(seq)


def _new_log(db: sqlite3.Connection, log: str, expires: float) -> tuple[int | None, int, int]:
    """Make a log whose numbers come after those of every log that ever was: no position is mistaken for one in it."""
    db.execute("DELETE FROM logs WHERE name = ?", (log,))  # one that is over and not yet swept
    newest = _one(db, "SELECT seq FROM sqlite_sequence WHERE name = 'entries'")
    last = newest[0] if newest else 0
    sql = "INSERT INTO logs (name, first, last, due, expires) VALUES (?1, ?2 + 1, ?2, ?3, ?3)"
    return db.execute(sql, (log, last, expires)).lastrowid, last + 1, last


def read(db: sqlite3.Connection, now: float, log: str, after: int, limit: int) -> LogPage:
    """Return the entries of `log` above `after`."""
    rows = db.execute(READ, (after, log, now, limit)).fetchall()
    if not rows:
        return LogPage([], 1, 0)
    first, last = rows[0][:2]
    return LogPage([LogEntry(seq, value) for _, _, seq, value in rows if seq is not None], first, last)


def look(db: sqlite3.Connection, now: float, logs: Mapping[str, int]) -> tuple[set[str], int]:
    """Return which of `logs` have news, and the id of the newest entry of any log from before that look."""
    newest = _one(db, "SELECT seq FROM sqlite_sequence WHERE name = 'entries'")
    sql = "SELECT 1 FROM logs WHERE name = ? AND last <> ? AND expires > ?"
    ready = {log for log, after in logs.items() if _one(db, sql, log, after, now)}
    return ready, newest[0] if newest else 0


def change(db: sqlite3.Connection) -> int:
    """Return a number that is another one once another connection has written."""
    return int(_one(db, "PRAGMA data_version")[0])


def news(db: sqlite3.Connection, after_entry: int) -> Iterable[tuple[str, int]]:
    """Return the logs that have entries past the id `after_entry`, each with the newest of them."""
    return db.execute(NEWS, (after_entry,)).fetchall()


def scan(db: sqlite3.Connection, now: float, family: str, after: str, limit: int) -> list[str]:
    """Return the keys of `family` that sort after `after`."""
    start = max(f"{family}/", f"{after}\0")  # no key holds a NUL: this is the next after `after`
    return [key for (key,) in db.execute(SCAN, (start, f"{family}0", now, limit))]


def count(db: sqlite3.Connection, now: float, family: str) -> int:
    """Return how many records `family` holds."""
    return int(_one(db, COUNT, f"{family}/", f"{family}0", now)[0])


def sweep(db: sqlite3.Connection, now: float, rows: int) -> bool:
    """Delete some of what is over, of each kind at most `rows`; return whether there may be more."""
    if not _one(db, ANYTHING_DUE, now)[0]:
        return False
    with db:
        db.execute("BEGIN IMMEDIATE")
        changed = [db.execute(statement, (now, rows)).rowcount for statement in SWEEPS]
    return max(changed) >= rows
