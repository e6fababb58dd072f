"""``ringtrue tokens`` over real HTTP: the embedded model, honest, and with templates not its own."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import pytest

from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from ringtrue.cli import COMMANDS, run
from ringtrue.exit_codes import ExitCode
from tests.unit.tokenizer_checks.templates.sources import CHATML

CHATS = ("one_user", "system", "one_tool_without", "one_tool", "prefill", "digits")
TOOLLESS = CHATML.replace("if tools", "if false")
COMPACT = CHATML.replace("| tojson", "| tojson(separators=(',', ':'))")
LINES_LOST = CHATML.replace("<|im_end|>\\n", "<|im_end|>")
OTHER_SYSTEM = CHATML.replace("You are Ember, a careful assistant.", "")


@pytest.fixture
def chatml(tmp_path):
    path = tmp_path / "chatml.jinja"
    path.write_text(CHATML, encoding="utf-8")
    return str(path)


@pytest.fixture
def ringtrue(capsys):
    async def command(*arguments: str) -> tuple[int, Any, str]:
        code = await asyncio.to_thread(run, COMMANDS, ["tokens", *arguments, "--format", "json"])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else None, said.err

    return command


@asynccontextmanager
async def served(engine: Any, model: str = "smollm2-135m", name: str = "m", **replica: Any) -> Any:
    app = create_app(engine, Replica(name, model, **replica), key=None, now=lambda: 0.0)
    async with serve_app(app) as url:
        yield url


def _chats(*names: str) -> list[str]:
    return [part for name in names or CHATS for part in ("--chat", name)]


async def test_an_honest_server_is_fine_and_a_template_that_ignores_tools_is_the_models_own(engine, ringtrue):
    async with served(engine) as url:
        code, report, said = await ringtrue("diff", "--url", url, *_chats())

    assert (code, report["verdicts"][0]["verdict"]) == (ExitCode.FINE, "OK")
    assert {chat["match"] for chat in report["chats"]} == {"equal"}
    assert all(chat["used"] for chat in report["chats"])
    assert "At most" in said  # what it costs is told before
    (tools,) = [one for one in report["findings"] if one["code"] == "tokens.relation.tools"]
    assert (tools["party"], tools["severity"]) == ("model", "info")


async def test_tools_that_only_the_server_writes_are_the_servers(engine, ringtrue):
    async with served(engine, chat_template=CHATML) as url:
        code, report, _ = await ringtrue("diff", "--url", url, *_chats())

    (tools,) = [one for one in report["findings"] if one["code"] == "tokens.relation.tools"]
    assert (code, tools["party"], tools["severity"]) == (ExitCode.DRIFT, "provider", "warn")
    assert "tools reach the prompt; by the model's own template" in tools["message"]


PLANTED = {
    "bos_doubled": ({"faults": Faults(double_bos=True), "chat_template": CHATML}, "bos"),
    "generation_prompt_dropped": (
        {"faults": Faults(drop_generation_prompt=True), "chat_template": CHATML},
        "suffix",
    ),
    "tools_dropped": ({"chat_template": TOOLLESS}, "tools"),
    "tool_json_compact": ({"chat_template": COMPACT}, "tools"),
    "default_system_dropped": ({"chat_template": OTHER_SYSTEM}, "system"),
}


@pytest.mark.parametrize("fault", PLANTED)
async def test_a_planted_fault_is_named(engine, ringtrue, chatml, tmp_path, fault):
    replica, layer = PLANTED[fault]
    page = tmp_path / "page.html"
    async with served(engine, **replica) as url:
        code, report, _ = await ringtrue(
            "diff", "--url", url, "--template", chatml, "--html", str(page), *_chats()
        )

    assert (code, report["verdicts"][0]["verdict"]) == (ExitCode.DRIFT, "CHANGED")
    assert report["findings"][0]["code"] == f"tokens.{layer}"
    assert fault in report["explained"]
    assert "<table>" in page.read_text(encoding="utf-8")


async def test_a_fault_that_is_in_no_library_is_told_by_its_layer(engine, ringtrue, chatml):
    async with served(engine, chat_template=LINES_LOST) as url:
        code, report, _ = await ringtrue("diff", "--url", url, "--template", chatml, *_chats("system"))

    assert (code, report["findings"][0]["code"]) == (ExitCode.DRIFT, "tokens.white_space")
    assert report["explained"] == []


async def test_two_servers_are_held_against_each_other(engine, ringtrue):
    async with served(engine) as url, served(engine) as same, served(engine, chat_template=CHATML) as other:
        alike = await ringtrue("diff", "--url", url, "--against", same, *_chats("one_user", "one_tool"))
        unlike = await ringtrue("diff", "--url", url, "--against", other, *_chats("one_user", "system"))

    assert (alike[0], {chat["match"] for chat in alike[1]["chats"]}) == (ExitCode.FINE, {"equal"})
    assert unlike[0] is ExitCode.DRIFT
    assert {chat["name"]: chat["match"] for chat in unlike[1]["chats"]} == {
        "one_user": "differs",
        "system": "equal",
    }
    assert f"than those of {other}" in unlike[1]["findings"][0]["message"]


async def test_a_server_that_shows_only_counts_is_held_against_them(engine, ringtrue):
    options = ("--dialect", "openai", *_chats("one_user", "system"))
    async with served(engine) as url, served(engine, faults=Faults(double_bos=True)) as faulty:
        fits = await ringtrue("diff", "--url", url, *options)
        differs = await ringtrue("diff", "--url", faulty, *options)

    assert (fits[0], {chat["match"] for chat in fits[1]["chats"]}) == (ExitCode.FINE, {"count fits"})
    assert (differs[0], {chat["match"] for chat in differs[1]["chats"]}) == (
        ExitCode.DRIFT,
        {"count differs"},
    )


async def test_a_template_that_raises_or_never_ends_leaves_nothing_to_compare(engine, ringtrue, tmp_path):
    raising, endless = tmp_path / "raising.jinja", tmp_path / "endless.jinja"
    raising.write_text("{{ raise_exception('not today') }}", encoding="utf-8")
    endless.write_text(
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "utf-8"
    )
    async with served(engine) as url:
        for path, why in ((raising, "not today"), (endless, "steps")):
            code, report, _ = await ringtrue(
                "diff", "--url", url, "--template", str(path), *_chats("one_user")
            )

            assert (code, report["chats"][0]["match"]) == (ExitCode.UNMEASURED, "refused")
            assert why in report["chats"][0]["sentence"]


async def test_a_model_is_never_named_by_what_would_act_on_a_terminal(small_engine, roomy_model, ringtrue):
    async with served(small_engine, roomy_model, name="m\x1b[2J") as url:
        code, report, said = await ringtrue("diff", "--url", url, *_chats("one_user"))

    assert (code, report) == (ExitCode.UNMEASURED, None)
    assert "can't be printed" in said
    assert "\x1b" not in said


async def test_counts_alone_tell_a_planted_fault_from_the_models_own(
    small_engine, roomy_model, ringtrue, chatml, tmp_path
):
    model = ("--reference", roomy_model, "--template", chatml)
    async with (
        served(small_engine, roomy_model, chat_template=CHATML) as url,
        served(small_engine, roomy_model, chat_template=TOOLLESS) as faulty,
    ):
        honest = await ringtrue("infer", "--url", url, "--dialect", "openai", "--hidden", "0", *model)
        dropped = await ringtrue("infer", "--url", faulty, "--dialect", "openai", *model)

    assert (honest[0], honest[1]["verdicts"][0]["verdict"]) == (ExitCode.FINE, "OK")
    own = honest[1]["promised"]
    assert own in {fit["name"] for fit in honest[1]["consistent"]}
    fits = {fit["name"] for fit in dropped[1]["consistent"]}
    assert (dropped[0], own in fits, f"{own} + tools_dropped" in fits) == (ExitCode.DRIFT, False, True)
    counts = tmp_path / "counts.json"
    counts.write_text(json.dumps(dropped[1]), encoding="utf-8")
    again = await ringtrue("infer", "--counts", str(counts), *model)
    assert (again[0], again[1]["consistent"]) == (dropped[0], dropped[1]["consistent"])
