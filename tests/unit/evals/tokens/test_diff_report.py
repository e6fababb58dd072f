import io

import orjson
import pytest
from rich.console import Console

from evals.tokens.chats import choose_chats
from evals.tokens.diff_report import render_diff, to_json, to_junit
from evals.tokens.page import as_page, write_page
from ringtrue.errors import UsageError
from ringtrue.report import Format
from tests.unit.evals.tokens.served import NOW, compare_shown, compared_with, shown_by, without_ids
from tests.unit.evals.tokens.small_format import small_format

SOME = ("one_user", "one_tool_without", "one_tool", "no_generation_prompt", "two_turns", "digits")


def _printed(found, form: Format) -> str:
    out = io.StringIO()
    render_diff(found, NOW, form, Console(file=out, width=140))
    return out.getvalue()


def test_the_json_holds_verdicts_findings_chats_and_relations():
    report = orjson.loads(to_json(compared_with("bos_doubled", names=SOME), NOW))

    assert report["schema"] == 1
    assert report["verdicts"][0]["verdict"] == "CHANGED"
    assert report["explained"] == ["bos_doubled"]
    chat = report["chats"][0]
    assert (chat["match"], chat["layer"], chat["faults"]) == ("differs", "bos", ["bos_doubled"])
    assert (chat["difference"]["first"], chat["difference"]["added"]) == (1, 1)
    assert len(chat["difference"]["used"]["ids"]) <= 32
    assert {one["of_server"]["name"] for one in report["relations"]} >= {"tools", "prefix"}


def test_the_table_shows_the_first_difference_of_a_layer_side_by_side():
    text = _printed(compared_with("bos_doubled", names=SOME), Format.TABLE)

    assert "+                                              |      1" in text
    assert "tokens: CHANGED" in text
    assert "in every chat the IDs are those of bos_doubled" in text


def test_the_table_of_an_honest_server_has_no_diff():
    text = _printed(compared_with(names=SOME), Format.TABLE)

    assert "expected" not in text
    assert "tokens: OK" in text


def test_markdown_has_a_row_a_chat():
    text = _printed(compared_with("tools_dropped", names=SOME), Format.MARKDOWN)

    assert "tokens: **CHANGED**" in text
    assert "| one_tool | differs | chat |" in text
    assert "| digits | equal | chat |" in text


def test_junit_counts_what_differs_and_what_was_not_shown():
    own = small_format()
    chats = choose_chats(("one_user", "digits", "words"))
    shown = shown_by(own.prompts, chats)
    faulty = shown_by(own.prompts, chats, "bos_doubled")
    shown = {**shown, "digits": faulty["digits"], "words": without_ids(shown["words"], "404 \x00\ud800")}

    report = to_junit(compare_shown(own.prompts, chats, shown))

    assert 'tests="3" failures="1" errors="1"' in report
    assert '<error type="not shown" message="404 \\u0000\\ud800" />' in report


def test_no_control_character_of_a_server_reaches_the_terminal():
    own = small_format()
    chats = choose_chats(("one_user",))
    shown = {
        name: without_ids(ways, "\x1b[31mred\ud800") for name, ways in shown_by(own.prompts, chats).items()
    }

    found = compare_shown(own.prompts, chats, shown)
    text = _printed(found, Format.TABLE)

    assert "\x1b" not in text
    assert "red" in text
    assert "\\\\u001b[31mred" in to_json(found, NOW)


def test_the_page_holds_every_difference_with_its_text_escaped(tmp_path):
    found = compared_with("think_marker_split", names=("one_user", "thinking_off", "reasoning_history"))
    page = as_page(found)

    differing = [one.name for one in found.outcomes if one.difference is not None]
    assert differing
    assert page.count("<table>") == len(differing)
    assert all(f"<h2>{name}</h2>" in page for name in differing)
    assert "<think>" not in page
    write_page(found, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert (tmp_path / "page.html").stat().st_mode & 0o077 == 0


def test_a_page_that_can_not_be_written_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be written"):
        write_page(compared_with(names=SOME), tmp_path / "none" / "page.html")
