"""Every prompt and every resource that the help desk offers, by every kind of client, also those that ask."""

import pytest

from tests.peers.driving import (
    CANCEL,
    CLIENTS,
    DECLINE,
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    Json,
    Outcome,
    Peer,
    accept,
    drive,
    get_prompt,
    read,
)

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

KINDS = {
    **CLIENTS,
    "mcp2-unable": Peer("mcp2", "2026-07-28", can_be_asked=False),
    "ts2-unable": Peer("ts2", "2026-07-28", can_be_asked=False),
}
ANSWERS = {"triage": accept({"first": "high"}), "desk://report": accept({"period": "week"})}
"""What the user says to those that ask."""


@pytest.fixture(scope="module")
def offered(shared_url: str) -> list[str]:
    """Names of prompts and URIs of resources; those of templates are filled in."""
    prompts, resources, templates = drive(CLIENTS["ts2-modern"], shared_url, PROMPTS, RESOURCES, TEMPLATES).calls
    assert prompts.result is not None
    assert resources.result is not None
    assert templates.result is not None
    return [
        *(prompt["name"] for prompt in prompts.result["prompts"]),
        *(resource["uri"] for resource in resources.result["resources"]),
        *(template["uriTemplate"].replace("{id}", "T-1") for template in templates.result["resourceTemplates"]),
    ]


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of client in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def seen(kind: str, shared_url: str, offered: list[str]) -> dict[str, Outcome]:
    """What that client gets: its lists, all that is offered, and what is refused."""
    wanted = {
        "prompts": PROMPTS,
        "resources": RESOURCES,
        "templates": TEMPLATES,
        "declined": get_prompt("triage", DECLINE),
        "cancelled": read("desk://report", CANCEL),
        "unknown prompt": get_prompt("nope"),
        "unfit argument": get_prompt("summarize_ticket", id="T-9"),
        "no argument": get_prompt("summarize_ticket"),
        "unknown resource": read("desk://nope"),
    }
    for name in offered:
        answers = (ANSWERS[name],) if name in ANSWERS else ()
        wanted[name] = read(name, *answers) if "://" in name else get_prompt(name, *answers, **_arguments(name))
    report = drive(KINDS[kind], shared_url, *wanted.values())
    return dict(zip(wanted, report.calls, strict=True))


def _arguments(name: str) -> dict[str, str]:
    return {} if name == "triage" else {"id": "T-1"}


def error(outcome: Outcome) -> Json:
    assert outcome.error is not None, outcome.result
    return outcome.error


def test_each_client_is_listed_all_that_is_offered(seen: dict[str, Outcome], offered: list[str]) -> None:
    results = [seen[name].result or {} for name in ("prompts", "resources", "templates")]
    prompts, resources, templates = (
        result[key] for result, key in zip(results, ("prompts", "resources", "resourceTemplates"), strict=True)
    )
    listed = [
        *(prompt["name"] for prompt in prompts),
        *(resource["uri"] for resource in resources),
        *(template["uriTemplate"].replace("{id}", "T-1") for template in templates),
    ]
    assert listed == offered
    assert set(ANSWERS) < set(offered)
    arguments = {prompt["name"]: [each["name"] for each in prompt.get("arguments", [])] for prompt in prompts}
    assert arguments["summarize_ticket"] == ["id"]


def test_what_asks_nothing_is_given_to_every_client(seen: dict[str, Outcome], offered: list[str]) -> None:
    for name in set(offered) - set(ANSWERS):
        assert "T-1" in _text(seen[name], name)
        assert seen[name].questions == []


@behaviour("ASK-19", "MOD-15")
def test_what_asks_is_given_when_the_user_has_answered(seen: dict[str, Outcome], kind: str) -> None:
    if kind.endswith("chat"):
        for name in ANSWERS:
            assert error(seen[name])["code"] == -32603
            assert f"{name} asks its user" in error(seen[name])["message"]
    elif kind.endswith("unable"):
        for name in ANSWERS:
            assert error(seen[name])["code"] == -32021
            assert error(seen[name])["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    else:
        assert [seen[name].asked_by for name in ANSWERS] == [["form"], ["form"]]
        assert "T-4 (high, " in _text(seen["triage"], "triage").splitlines()[2]
        assert _text(seen["desk://report"], "desk://report").startswith("# The last week")
        assert "(decline)" in error(seen["declined"])["message"]
        assert "(cancel)" in error(seen["cancelled"])["message"]


def test_what_is_not_there_is_an_error_with_the_code_of_the_revision(seen: dict[str, Outcome], kind: str) -> None:
    assert [error(seen[name])["code"] for name in ("unknown prompt", "unfit argument", "no argument")] == [-32602] * 3
    assert "Unknown ticket T-9" in error(seen["unfit argument"])["message"]
    missing = error(seen["unknown resource"])
    assert missing["data"] == {"uri": "desk://nope"}
    # The TypeScript SDK of the second generation shows its callers one code, whatever came.
    is_legacy = kind.endswith(("push", "chat")) and not kind.startswith("ts2")
    assert missing["code"] == (-32002 if is_legacy else -32602)


def _text(outcome: Outcome, name: str) -> str:
    assert outcome.result is not None, outcome.error
    if "://" in name:
        (content,) = outcome.result["contents"]
        assert content["uri"] == name
        return str(content["text"])
    (message,) = outcome.result["messages"]
    assert (message["role"], message["content"]["type"]) == ("user", "text")
    return str(message["content"]["text"])
