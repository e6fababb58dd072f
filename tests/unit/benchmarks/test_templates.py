"""The benchmark of templates: its held-out pairs, and its figures on two templates."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from importlib import import_module
from types import SimpleNamespace

import pytest

from reference_engine.models.codec import TokenCodec
from tests.material import template_folder
from tests.small_models import byte_level_tokenizer
from tokenizer_checks.blame import Layer
from tokenizer_checks.templates.fixtures import fixtures
from tokenizer_checks.templates.model import ModelPrompts

NOW = datetime(2026, 3, 9, 15, 30)  # noqa: DTZ001
PHI, LLAMA = "microsoft-Phi-3.5-mini-instruct", "meta-llama-Llama-3.2-3B-Instruct"


@pytest.fixture(scope="module")
def figures() -> Iterator[SimpleNamespace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend("benchmarks")
        parts = ("real_models", "held_out", "mutated", "counted", "days", "examined")
        modules = {part: import_module(f"template_figures.{part}") for part in parts}
        yield SimpleNamespace(**modules, command=import_module("templates"))


@pytest.fixture(scope="module")
def models(figures):
    return {model.name: model for model in figures.real_models.real_models()}


def bytes_of(figures, model) -> ModelPrompts:
    """The model's template and markers over one token a byte: any change of text is one of IDs."""
    codec = TokenCodec(byte_level_tokenizer())
    with_bytes = figures.real_models.with_own_markers(codec, model)
    return ModelPrompts(with_bytes, name=model.name)


@pytest.fixture(scope="module")
def phi(figures, models) -> ModelPrompts:
    return figures.real_models.prompts_of(models[PHI])


def test_every_fetched_template_has_a_vocabulary(models):
    files = {
        path.stem if path.suffix == ".jinja" else path.name for path in template_folder().glob("*.jinja")
    }
    assert set(models) == files


def test_a_models_markers_are_one_id_each_and_the_vocabulary_stays_as_it_is(figures, models):
    plain = TokenCodec(byte_level_tokenizer())
    codec = figures.real_models.with_own_markers(plain, models[LLAMA])

    for marker in ("<|eot_id|>", "<|start_header_id|>", "<|begin_of_text|>"):
        assert len(codec.encode_prompt(marker, add_special_tokens=False)) == 1
        assert len(plain.encode_prompt(marker, add_special_tokens=False)) > 1
    assert codec.special_tokens == {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}
    assert codec.decode(codec.encode_prompt("<|eot_id|>", add_special_tokens=False)) == "<|eot_id|>"


def test_the_pairs_are_many_spread_and_most_revisions_name_their_source(figures):
    every = figures.held_out.held_out_pairs()
    assert len({pair.name for pair in every}) == len(every)
    assert sum(pair.kind == "revision" for pair in every) >= 12
    assert all(pair.source for pair in every if pair.kind != "made")
    for number in (1, 2):
        pairs = [pair for pair in every if pair.number == number]
        assert len(pairs) >= 30
        assert len({pair.template for pair in pairs}) >= 12
        assert {pair.layer for pair in pairs} == set(Layer) - {Layer.UNKNOWN}


def test_pairs_are_written_for_the_files_that_were_fetched(figures):
    for pair in figures.held_out.held_out_pairs():
        file = template_folder() / f"{pair.template}.jinja"
        assert hashlib.sha256(file.read_bytes()).hexdigest() == pair.sha256, pair.name


def test_the_second_set_repeats_nothing_of_the_first(figures):
    first, second = ([pair for pair in figures.held_out.held_out_pairs() if pair.number == n] for n in (1, 2))
    assert not {pair.sha256 for pair in first} & {pair.sha256 for pair in second}
    for part in ("name", "change", "edits", "apart", "unknown"):
        told, again = ({getattr(pair, part) for pair in pairs} - {None, ()} for pairs in (first, second))
        assert told, part
        assert again, part
        assert not told & again, part


def test_every_edit_of_a_pair_changes_the_ids_of_a_chat(figures, models):
    for pair in figures.held_out.held_out_pairs():
        prompts = bytes_of(figures, models[pair.template])
        alone = [(edit,) for edit in pair.edits]  # pairs without edits change no text: the next test
        for edits in {pair.edits, *alone} - {()}:
            part = replace(pair, edits=edits)
            assert any(figures.held_out.changes(part, prompts, fixtures(), NOW)), (pair.name, edits)


def test_every_pair_of_the_tokenizers_changes_the_ids_of_a_chat(figures, models):
    for pair in figures.held_out.held_out_pairs():
        if not (pair.apart or pair.unknown):
            continue
        prompts = figures.real_models.prompts_of(models[pair.template])
        assert any(figures.held_out.changes(pair, prompts, fixtures(), NOW)), pair.name


def test_a_fixture_may_have_a_right_layer_of_its_own(figures, models):
    pairs = {pair.name: pair for pair in figures.held_out.held_out_pairs()}
    pair = pairs["gemma_answers_by_assistant"]
    chats = [one for one in fixtures() if one.name in ("two_turns", "prefill", "prefill_after_history")]
    prompts = bytes_of(figures, models[pair.template])

    right = {one.fixture: one.right for one in figures.held_out.judged(pair, prompts, chats, NOW)}
    assert right == {"two_turns": Layer.HISTORY, "prefill": Layer.SUFFIX}


def test_fixtures_that_a_pair_names_are_there(figures):
    names = {fixture.name for fixture in fixtures()}
    assert all({*pair.layers, *pair.left_out} <= names for pair in figures.held_out.held_out_pairs())


def test_an_edit_refuses_another_file_than_it_was_written_for(figures):
    pair = figures.held_out.held_out_pairs()[0]
    with pytest.raises(ValueError, match="not the file"):
        pair.edited("{{ messages }}")


def test_a_known_fault_of_a_real_template_is_seen_named_and_blamed(figures, phi):
    chats = [one for one in fixtures() if one.name in ("one_user", "system")]
    rows = {(one.fixture, one.mutator): one for one in figures.mutated.told(phi, chats, NOW)}

    dropped = rows["one_user", "generation_prompt_dropped"]
    assert (dropped.seen, dropped.named, dropped.right) == (True, True, True)
    assert rows["system", "system_dropped"].layer == "system"
    by_mutator, by_template = figures.mutated.tallies((PHI, one) for one in rows.values())
    assert by_mutator["system_dropped"].n == by_template[PHI]["system_dropped"].n == 1


def test_counts_tell_a_second_bos_only_where_nothing_is_hidden(figures, models):
    prompts = bytes_of(figures, models[LLAMA])
    rows, hidden = figures.counted.counted(prompts, figures.real_models.RememberingRenderer(), (), NOW)
    told = {row.mutator: row for row in rows}

    assert (told["bos_doubled"].seen, told["bos_doubled"].seen_free) == (True, False)
    assert (told["system_dropped"].seen, told["system_dropped"].seen_free) == (True, True)
    assert "bos_doubled" in hidden["constant"]
    assert "tool_ids_renamed" in hidden["equal"]


def test_vocabularies_that_cut_alike_are_not_told_apart(figures):
    codec = TokenCodec(byte_level_tokenizer())
    fits = dict(figures.counted.vocabularies_apart({"one": codec, "other": codec}))
    assert fits == {"one": ("one", "other"), "other": ("one", "other")}


def test_an_honest_server_raises_no_alarm_around_midnight_and_one_two_days_off_does(figures, models):
    prompts = bytes_of(figures, models[LLAMA])
    chats = [one for one in fixtures() if one.name == "one_user"]
    asked, raised = figures.days.alarms(prompts, chats)

    assert (asked, raised) == (len(list(figures.days.clocks())), [])
    used = prompts.ids(chats[0].chat, NOW + timedelta(days=2))
    assert prompts.expected(chats[0].chat, NOW, used) != used


def test_the_clocks_lie_on_both_sides_of_a_years_end(figures):
    years = {(now.year, elsewhere.year) for now, elsewhere in figures.days.clocks()}
    assert {(2026, 2027), (2027, 2026)} <= years


def test_a_missed_goal_is_told(figures):
    perfect = {"n": 100, "seen": 100, "layer_right_of_equals": 95, "named": 100}
    result = {
        "known_faults": {"all": perfect},
        "held_out": {"1": {"right": 9, "pairs": 10}, "2": {"right": 29, "pairs": 32}},
        "counts": {"seen": 80, "n": 100},
        "false_alarms": {"alarms": []},
    }
    assert all(figures.command.goals(result).values())
    result["held_out"]["2"]["right"] = 28
    assert [goal for goal, met in figures.command.goals(result).items() if not met] == [
        "held-out pairs of set 2, layer right"
    ]
