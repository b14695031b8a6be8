"""Key rings: files of them, made, rotated and listed; the one beside a state file; what a command seals with."""

import os
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bridge import Bridge, ConfigurationError, Context, KeyRing, load_keys
from bridge.keys import (
    ENVIRONMENT,
    keys_beside,
    keys_from_environment,
    list_keys,
    make_key_file,
    rotate_key_file,
)
from bridge.stores import open_store
from bridge.testing import connect

ONE, TWO = "11" * 32, "22" * 32
REPOSITORY = Path(__file__).parent.parent
posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.touch(mode)
    path.chmod(mode)
    path.write_text(text)
    return path


def secrets_of(ring: KeyRing) -> list[str]:
    return [secret.hex() for secret in ring.keys.values()]


@posix
def test_a_new_key_file_holds_one_secret_and_is_its_owners_alone(tmp_path: Path) -> None:
    made = make_key_file(tmp_path / "keys")
    assert mode(tmp_path / "keys") == 0o600
    assert len(load_keys(tmp_path / "keys").keys) == 1
    assert made.seals
    assert list(tmp_path.iterdir()) == [tmp_path / "keys"], "something was left beside it"


def test_a_key_file_that_is_there_is_not_made_anew(tmp_path: Path) -> None:
    file = write(tmp_path / "keys", ONE)
    with pytest.raises(ConfigurationError, match=r"is there already.*rotate"):
        make_key_file(file)
    assert secrets_of(load_keys(file)) == [ONE]


@posix
@pytest.mark.parametrize("readable", [0o644, 0o604, 0o602])
def test_a_key_file_that_everybody_can_read_is_refused_with_what_mends_it(tmp_path: Path, readable: int) -> None:
    file = write(tmp_path / "keys", ONE, readable)
    for read in (load_keys, list_keys, rotate_key_file):
        with pytest.raises(ConfigurationError, match=f"chmod 600 {file}") as refused:
            read(file)
        assert ONE not in str(refused.value)
    file.chmod(0o640)
    assert secrets_of(load_keys(file)) == [ONE], "a group may be let in"


@posix
def test_rotation_puts_a_new_secret_first_and_keeps_so_many_old_ones(tmp_path: Path) -> None:
    file = write(tmp_path / "keys", f"{ONE}  # from long ago\n{TWO}\n")
    before = load_keys(file)
    rotate_key_file(file, keep=1)
    after = secrets_of(load_keys(file))
    assert after[1:] == [ONE]
    assert after[0] not in secrets_of(before)
    assert mode(file) == 0o600
    assert "from long ago" in list_keys(file)[1].note
    rotate_key_file(file, keep=0)
    assert len(load_keys(file).keys) == 1
    assert list(tmp_path.iterdir()) == [file], "something was left beside it"


def test_a_prepared_secret_opens_at_once_and_seals_from_the_next_rotation_on(tmp_path: Path) -> None:
    file = write(tmp_path / "keys", ONE)
    prepared = rotate_key_file(file, prepare=True)[1]
    assert (prepared.seals, prepared.prepared) == (False, True)
    assert secrets_of(load_keys(file))[0] == ONE
    with pytest.raises(ConfigurationError, match="prepared"):
        rotate_key_file(file, prepare=True)
    rotated = rotate_key_file(file)
    assert [key.id for key in rotated] == [prepared.id, list_keys(file)[1].id]
    assert (rotated[0].seals, rotated[0].prepared) == (True, False)
    assert secrets_of(load_keys(file))[1] == ONE


def test_a_rotated_file_stays_where_a_link_points(tmp_path: Path) -> None:
    real = write(tmp_path / "real", ONE)
    link = tmp_path / "link"
    link.symlink_to(real)
    rotate_key_file(link)
    assert link.is_symlink()
    assert len(load_keys(real).keys) == 2


def test_listing_shows_no_secret(tmp_path: Path) -> None:
    file = write(tmp_path / "keys", f"{ONE}\n# a word about it\n{TWO}\n")
    shown = str(list_keys(file))
    assert len(list_keys(file)) == 2
    assert ONE not in shown
    assert TWO not in shown


def test_a_ring_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert keys_from_environment() is None
    for text in (f"{TWO},{ONE}", f"{TWO} {ONE}", f"\n{TWO}\n{ONE}\n"):
        monkeypatch.setenv(ENVIRONMENT, text)
        ring = keys_from_environment()
        assert ring is not None
        assert secrets_of(ring) == [TWO, ONE]
    monkeypatch.setenv(ENVIRONMENT, "11" * 31)
    with pytest.raises(ConfigurationError, match=f"{ENVIRONMENT}, line 1: expected 64") as refused:
        keys_from_environment()
    assert "11" * 31 not in str(refused.value)


@posix
def test_a_ring_is_kept_beside_a_state_file(tmp_path: Path) -> None:
    state = tmp_path / "new" / "state.db"
    ring = keys_beside(state)
    file = state.with_name("state.db.key")
    assert mode(file) == 0o600
    assert mode(file.parent) == 0o700
    assert secrets_of(keys_beside(state)) == secrets_of(ring) == secrets_of(load_keys(file))
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        keys_beside(state)


def test_a_ring_that_cannot_be_made_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="Not a directory"):
        keys_beside(tmp_path / "file" / "state.db")


def test_processes_that_start_at_once_agree_on_one_ring(tmp_path: Path) -> None:
    program = (
        "import sys; from bridge.keys import keys_beside; print('there', flush=True); sys.stdin.readline();"
        f"print(keys_beside({str(tmp_path / 'state.db')!r}).first.hex())"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        for _ in range(4)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "there\n"
        for process in running:  # none makes it before all are there to do so
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        rings = {process.communicate(timeout=20)[0] for process in running}
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert len(rings) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.db.key"]


def command(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bridge", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=REPOSITORY,
        env={**os.environ, **environment},
    )


def test_the_command_makes_rotates_and_lists_without_showing_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    said = [command("keys", *words, file) for words in (["new"], ["rotate"], ["rotate", "--keep", "1"], ["list"])]
    assert [ran.returncode for ran in said] == [0, 0, 0, 0]
    held = list_keys(file)
    assert len(held) == 2
    assert [line.split()[0] for line in said[-1].stdout.splitlines()] == [key.id for key in held]
    for ran in said:
        assert not any(secret in ran.stdout + ran.stderr for secret in secrets_of(load_keys(file)))
    again = command("keys", "new", file)
    assert again.returncode == 1
    assert again.stderr.startswith("error: ")
    assert len(again.stderr.splitlines()) == 2, "an error is one line, and a hint the next"


REDIS = ("--store", "redis://127.0.0.1:9")
TARGET = ("serve", "http://127.0.0.1:9/mcp")


@pytest.mark.parametrize("served", [("demo",), TARGET, ("stdio", TARGET[1])], ids=lambda words: words[0])
def test_a_store_of_a_fleet_without_a_shared_ring_is_an_error_at_start(served: tuple[str, ...]) -> None:
    ran = command(*served, *REDIS)
    assert ran.returncode == 1
    errors = [line for line in ran.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "keys new" in errors[0]
    assert "--key-file" in errors[0]
    assert ENVIRONMENT in errors[0]
    assert "Traceback" not in ran.stderr


@posix
def test_a_command_with_a_file_store_keeps_its_ring_beside_it(tmp_path: Path) -> None:
    ran = command(*TARGET, "--store", f"sqlite:///{tmp_path}/state.db")
    assert "http://127.0.0.1:9/mcp" in ran.stderr, "it got as far as its target"
    assert mode(tmp_path / "state.db.key") == 0o600


@posix
@pytest.mark.parametrize("how", ["file", "environment"])
def test_a_ring_that_was_given_goes_before_the_one_beside_a_state_file(tmp_path: Path, how: str) -> None:
    file = write(tmp_path / "keys", ONE)
    given = {"environment": ((), {ENVIRONMENT: ONE}), "file": (("--key-file", file), {ENVIRONMENT: "no secret"})}[how]
    ran = command(*TARGET, "--store", f"sqlite:///{tmp_path}/state.db", *given[0], **given[1])
    assert "http://127.0.0.1:9/mcp" in ran.stderr, "it got as far as its target"
    assert not (tmp_path / "state.db.key").exists()


async def test_a_question_sealed_before_a_rotation_is_answered_after_it(
    tmp_path: Path, closing: AsyncExitStack
) -> None:
    make_key_file(tmp_path / "keys")

    def desk() -> Bridge:
        store = open_store(f"sqlite:///{tmp_path}/state.db")
        closing.push_async_callback(store.aclose)
        bridge = Bridge("desk", elicitation=True, store=store, keys=load_keys(tmp_path / "keys"))

        @bridge.tool
        async def close(ctx: Context) -> bool:
            return (await ctx.elicit("Close?", bool)).accepted

        return bridge

    call: dict[str, object] = {"name": "close", "arguments": {}}
    async with connect(desk()) as before:
        asked = await before.request("tools/call", call)
    rotate_key_file(tmp_path / "keys")
    (key,) = asked["inputRequests"]
    answer = {key: {"action": "accept", "content": {"confirm": True}}}
    async with connect(desk()) as after:
        again = {**call, "inputResponses": answer, "requestState": asked["requestState"]}
        ended = await after.request("tools/call", again)
    assert ended["resultType"] == "complete"
    assert ended["structuredContent"] is True
