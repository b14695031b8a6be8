"""Where the command keeps its state when no store is named."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.cli.state import default_file, default_store
from tests.redis_server import free_port

pytestmark = pytest.mark.anyio


def serve_nothing(folder: Path, *arguments: str, command: str = "serve") -> str:
    """Start a command that ends at once, since what it wraps cannot be reached; return what it says."""
    target = f"http://127.0.0.1:{free_port()}/mcp"
    words = [sys.executable, "-m", "bridge", command, target, *arguments]
    given = {**os.environ, "XDG_STATE_HOME": str(folder)}
    ran = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False, env=given)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    return ran.stderr


@pytest.mark.parametrize("command", ["serve", "stdio"])
def test_without_a_store_state_is_kept_in_a_file_that_only_the_user_reads(tmp_path: Path, command: str) -> None:
    serve_nothing(tmp_path / "state", command=command)
    folder = tmp_path / "state" / "mcp-session-bridge"
    assert folder.stat().st_mode & 0o777 == 0o700
    modes = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir() if file.suffix in (".db", ".key")}
    assert modes == {"state.db": 0o600, "state.db.key": 0o600}
    with sqlite3.connect(folder / "state.db") as db:
        keys = [key for (key,) in db.execute("SELECT key FROM records")]
    db.close()
    assert any(key.endswith("/store/sealed") for key in keys)


def test_in_memory_nothing_is_kept(tmp_path: Path) -> None:
    serve_nothing(tmp_path, "--store", "memory")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_other_keys_is_refused_in_one_line(tmp_path: Path) -> None:
    target = f"http://127.0.0.1:{free_port()}/mcp"
    said = []
    for digit in "12":
        keys = tmp_path / f"keys{digit}"
        keys.write_text(digit * 64)
        keys.chmod(0o600)
        words = [sys.executable, "-m", "bridge", "serve", target, "--key-file", str(keys)]
        given = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
        ran = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False, env=given)
        said.append(ran.stderr.strip().splitlines())
    assert "do not open the store" not in said[0][0]
    assert said[1][0].startswith("error: this node's keys (")
    assert len(said[1]) == 2, "an error is one line, and a hint the next"


@pytest.mark.parametrize("folder", ["", "relative/folder"])
def test_without_a_folder_for_state_it_is_in_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", folder)
    assert default_file() == tmp_path / ".local/state/mcp-session-bridge/state.db"


async def test_each_target_has_sessions_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    targets = [(["server.py:a"], False), (["server.py:b"], False), (["server.py:a"], True), (["http://h/a"], False)]
    stores = [default_store(words, is_command=is_command) for words, is_command in targets]
    for number, store in enumerate(stores):
        assert await store.put("session/1", b"%d" % number, ttl_seconds=60, if_version=0)
    again = [default_store(words, is_command=is_command) for words, is_command in targets]
    found = [await store.take("session/1") for store in again]
    assert found == [b"0", b"1", b"2", b"3"]
    monkeypatch.chdir("/")
    elsewhere = default_store(["server.py:a"], is_command=False)
    assert await elsewhere.count("session") == 0
    by_its_path = default_store([f"{tmp_path}/server.py:a"], is_command=False)
    assert await by_its_path.put("session/1", b"", ttl_seconds=60)
    assert (await by_its_path.count("session"), await stores[0].count("session")) == (1, 1)
    for store in [*stores, *again, elsewhere, by_its_path]:
        await store.aclose()


async def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    said = serve_nothing(tmp_path / "file")
    assert said.startswith("error: ")
    assert str(tmp_path / "file") in said
