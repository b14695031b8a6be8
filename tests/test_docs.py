"""Every code block of the README and of docs/ is true: Python runs, commands are parsed, JSON is JSON."""

import configparser
import json
import re
import shlex
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import anyio
import pytest
import typer

from bridge.asking.reasons import REASONS
from bridge.cli.main import app

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
KNOWN = {"python", "sh", "json", "text", "ini", "nginx"}


def blocks(language: str) -> list[Any]:
    found = []
    for page in PAGES:
        for number, (kind, code) in enumerate(BLOCK.findall(page.read_text()), 1):
            if kind == language:
                found.append(pytest.param(code, id=f"{page.relative_to(ROOT)}:{number}"))
    return found


def is_project(code: str) -> bool:
    return "import pytest" in code or code.startswith("# ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_what_it_is(page: Path) -> None:
    text = page.read_text()
    assert text.count("```") == 2 * len(BLOCK.findall(text)), "a block without a language, or not closed"
    assert {kind for kind, _ in BLOCK.findall(text)} <= KNOWN


@pytest.mark.parametrize("code", [block for block in blocks("python") if not is_project(block.values[0])])
def test_python_runs(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    # Paths of a server that was set up, as the page on deploying names them.
    (tmp_path / "keys").write_text("a1" * 32 + "\n")
    (tmp_path / "keys").chmod(0o600)
    code = code.replace("/etc/mcp/", f"{tmp_path}/").replace("/var/lib/mcp/", f"{tmp_path}/")
    scope: dict[str, Any] = {"__name__": "docs"}
    exec(compile(code, "docs", "exec"), scope)
    for name, test in list(scope.items()):
        if name.startswith("test_"):
            anyio.run(test)


def test_the_tests_of_the_testing_page_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    projects = [code for _, code in BLOCK.findall((ROOT / "docs" / "testing.md").read_text()) if is_project(code)]
    assert len(projects) == 4
    for number, code in enumerate(projects):
        named = re.match(r"# (\w+\.py)\n", code)
        folder = pytester.mkdir(f"project{number}") if named is None else pytester.path / "shop"
        folder.mkdir(exist_ok=True)
        (folder / (named[1] if named else f"test_block{number}.py")).write_text(code)
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib\nfilterwarnings = error\n")
    result = pytester.runpytest_subprocess("-p", "bridge.testing.plugin", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=9)


@pytest.mark.parametrize("code", blocks("sh"))
def test_commands_are_real(code: str) -> None:
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:3] == ["python", "-m", "bridge"]:
            parse(words[3:])
        elif words[:1] == ["make"]:
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
        elif words[:2] == ["pip", "install"]:
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            assert set(re.findall(r"\w+", words[2].partition("[")[2])) <= set(extras), line


def parse(words: list[str]) -> None:
    """Let the command line read its arguments, and do nothing with them."""
    group: Any = typer.main.get_command(app)
    with group.make_context("bridge", list(words)) as context:
        name, command, rest = group.resolve_command(context, words)
        while hasattr(command, "resolve_command"):
            name, command, rest = command.resolve_command(context, rest)
        with command.make_context(name, rest, parent=context):
            pass


@pytest.mark.parametrize("code", blocks("json"))
def test_json_is_json(code: str) -> None:
    json.loads(code)


@pytest.mark.parametrize("code", blocks("ini"))
def test_units_are_read_as_units(code: str) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read_string(code)
    assert unit.sections()


@pytest.mark.parametrize("code", blocks("nginx"))
def test_nginx_blocks_are_closed(code: str) -> None:
    lines = [line.partition("#")[0].strip() for line in code.splitlines()]
    assert all(line[-1] in ";{}" for line in lines if line)
    assert code.count("{") == code.count("}")


def test_the_page_on_routes_has_every_reason() -> None:
    page = (ROOT / "docs" / "routes.md").read_text()
    for word, reason in REASONS.items():
        assert f"| `{word}` | {reason.meaning} | {reason.setting} |" in page, word


class Loads(HTMLParser):
    """What a browser fetches for a page by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed") and given.get("src"):
            self.urls.append(str(given["src"]))
        if tag == "link" and not {"next", "prev", "canonical"} & set((given.get("rel") or "").split()):
            self.urls.append(str(given["href"]))
        assert "mermaid" not in (given.get("class") or ""), "mermaid is fetched from another host: draw it"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a page that links to nowhere, or is in no menu, does not build."""
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_site_loads_nothing_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text())
        assert not [url for url in loads.urls if re.match(r"(https?:)?//", url)], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", sheet.read_text()), sheet


def test_every_page_is_in_the_menu_and_the_pictures_are_on_theirs(site: Path) -> None:
    home = (site / "index.html").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        address = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        assert address == "index" or f'href="{address}/"' in home, f"{address} is not in the nav of mkdocs.yml"
    asking = (site / "asking" / "index.html").read_text()
    for picture in ("rerun", "step", "hold"):
        assert f'id="{picture}-t"' in asking


def test_the_reference_shows_the_docstrings_whole(site: Path) -> None:
    reference = (site / "reference" / "index.html").read_text()
    for name in ("bridge.app.Bridge.wrap", "bridge.upstreams.context.Context.elicit", "bridge.server.Options"):
        assert f'id="{name}"' in reference
