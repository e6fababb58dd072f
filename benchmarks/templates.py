"""Are faults of tokenizers and chat templates seen, and named right, on the real templates?

70 real templates, each with a real vocabulary (its family's, or a named
stand-in whose missing markers are added: benchmarks/template_models.toml), 60
chats, 43 known faults. Four questions:

- known faults: is every one that changes the IDs seen, and is its layer read
  right from the difference alone? Where several faults give the same IDs,
  nothing tells them apart, and the layer of any of them is right.
- held-out pairs (benchmarks/held_out_templates.toml): revisions of published
  templates, what other programs write, and faults by hand, collected before
  the rules were tuned. A pair is right if most of the chats that it changes are.
  A second set (held_out_templates_second.toml) was written apart from the rules;
  each set has its own figures, and is held to the goal by itself.
- counts of prompt tokens alone: which faults are seen, and how many hypotheses stay.
- an honest server whose calendar is a day off, and midnights: any alarm at all?

    python benchmarks/templates.py [TEMPLATE...]      # all of them by default: some minutes on two cores
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from template_figures.counted import vocabularies_apart
from template_figures.examined import Examined, examine, pairing
from template_figures.held_out import FILES, Judged, Pair, held_out_pairs
from template_figures.mutated import LAYERS, Tally, tallies
from template_figures.real_models import real_models, vocabulary

from reference_engine.models.codec import TokenCodec
from ringtrue.errors import ModelError
from tests.material import vocabulary_folder
from tokenizer_checks.blame import Layer

RESULTS = Path(__file__).parent / "results" / "templates.json"
PROCESSES = 2
NAMED, HELD_OUT, COUNTED = 0.95, 0.90, 0.80


def examined(names: Sequence[str]) -> list[Examined]:
    """Return what was measured of the templates named, of all without a name."""
    models = [model for model in real_models() if not names or model.name in names]
    # Neighbours in a vocabulary share it: a process opens each of them once.
    models.sort(key=lambda model: model.vocabulary)
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        found = []
        for one in pool.map(examine, models):
            print(f"{one.model.name:55} {len(one.told):6,} faults", file=sys.stderr)
            found.append(one)
    return found


def known_faults(found: Iterable[Examined]) -> dict[str, Any]:
    """Return the figures of the known faults, with all that was named wrong."""
    found = list(found)
    by_mutator, by_template = tallies((one.model.name, told) for one in found for told in one.told)
    layers: dict[str, Tally] = defaultdict(Tally)
    whole = Tally()
    wrong: dict[str, list[str]] = defaultdict(list)
    for one in found:
        for told in one.told:
            layers[LAYERS[told.mutator]].add(told)
            whole.add(told)
            if not told.right_of_equals:
                wrong[f"{told.mutator}, {one.model.name}"].append(f"{told.fixture}: {told.layer}")
    pairs = [tally for mutators in by_template.values() for tally in mutators.values()]
    return {
        "all": _row(whole),
        "by_layer": {name: _row(tally) for name, tally in sorted(layers.items())},
        "by_mutator": {name: _row(tally) for name, tally in by_mutator.items()},
        "never_changed_anything": sorted(set(LAYERS) - set(by_mutator)),
        "templates_and_mutators": {
            "n": len(pairs),
            "seen": sum(tally.seen == tally.n for tally in pairs),
            "right_in_most_chats": sum(2 * tally.right_of_equals > tally.n for tally in pairs),
        },
        "wrong": dict(wrong),
    }


def _row(tally: Tally) -> dict[str, Any]:
    return {
        "n": tally.n,
        "seen": tally.seen,
        "layer_right": tally.right,
        "layer_right_of_equals": tally.right_of_equals,
        "named": tally.named,
        "named_and_of_one_layer": tally.of_one_layer,
        "instead": dict(tally.instead.most_common()),
    }


def held_out(found: Iterable[Examined]) -> dict[str, Any]:
    """Return the figures of the held-out pairs, each set by itself, by its number."""
    judged = {name: rows for one in found for name, rows in one.held_out.items()}
    sets: dict[int, dict[str, Pair]] = {number: {} for number in FILES}
    for pair in held_out_pairs():
        if pair.name in judged:
            sets[pair.number][pair.name] = pair
    return {str(number): _of_set(pairs, judged) for number, pairs in sets.items()}


def _of_set(pairs: Mapping[str, Pair], judged: Mapping[str, Sequence[Judged]]) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {
        name: {
            "kind": pair.kind,
            "layer": pair.layer.value,
            "chats": len(judged[name]),
            "right": sum(one.right is one.blamed for one in judged[name]),
            "blamed": dict(Counter(one.blamed.value for one in judged[name]).most_common()),
            "most": _most(judged[name]),
        }
        for name, pair in pairs.items()
    }
    right = [name for name, row in rows.items() if 2 * row["right"] > row["chats"]]
    by_layer = {
        layer.value: [
            sum(name in right for name, pair in pairs.items() if pair.layer is layer),
            sum(pair.layer is layer for pair in pairs.values()),
        ]
        for layer in Layer
        if any(pair.layer is layer for pair in pairs.values())
    }
    chats = sum(row["chats"] for row in rows.values())
    return {
        "pairs": len(rows),
        "right": len(right),
        "chats": chats,
        "chats_right": sum(row["right"] for row in rows.values()),
        "by_layer": by_layer,
        "unseen": [name for name, row in rows.items() if row["chats"] == 0],
        "each": rows,
    }


def _most(rows: Sequence[Judged]) -> str | None:
    common = Counter(one.blamed.value for one in rows).most_common(1)
    return common[0][0] if common else None


def counts(found: Iterable[Examined]) -> dict[str, Any]:
    """Return what counts alone show of the faults that change the IDs of some chat."""
    by_mutator: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    fits: list[int] = []
    fits_free: list[int] = []
    unseen: dict[str, list[str]] = defaultdict(list)
    equal: dict[str, list[str]] = defaultdict(list)
    for one in found:
        changed = {told.mutator for told in one.told}
        for row in one.counted:
            if row.mutator not in changed:
                continue
            tally = by_mutator[row.mutator]
            tally[0] += 1
            tally[1] += row.seen
            tally[2] += row.seen_free
            fits.append(row.fits)
            fits_free.append(row.fits_free)
            if not row.seen:
                unseen[row.mutator].append(one.model.name)
        for name in one.undetectable.get("equal", ()):
            if name in changed:
                equal[name].append(one.model.name)
    n, seen, seen_free = (sum(tally[k] for tally in by_mutator.values()) for k in range(3))
    return {
        "n": n,
        "seen": seen,
        "seen_with_a_free_constant": seen_free,
        "hypotheses_left": dict(sorted(Counter(fits).items())),
        "hypotheses_left_with_a_free_constant": dict(sorted(Counter(fits_free).items())),
        "by_mutator": {
            name: {"n": n, "seen": seen, "seen_with_a_free_constant": free}
            for name, (n, seen, free) in by_mutator.items()
        },
        "unseen": dict(unseen),
        "undetectable_by_these_requests": dict(equal),
    }


def vocabularies() -> dict[str, Any]:
    """Return which of the fetched vocabularies the tokenizer vector does not tell apart."""
    codecs: dict[str, TokenCodec] = {}
    unread: dict[str, str] = {}
    for file in sorted(vocabulary_folder().glob("ggml-vocab-*.gguf")):
        name = file.stem.removeprefix("ggml-vocab-")
        try:
            codecs[name] = vocabulary(name)
        except ModelError as error:
            unread[name] = str(error)
    fits = dict(vocabularies_apart(codecs))
    confused = {name: [other for other in others if other != name] for name, others in fits.items()}
    pairs = len(fits) * (len(fits) - 1)
    return {
        "vocabularies": len(fits),
        "unread": unread,
        "pairs": pairs,
        "told_apart": pairs - sum(map(len, confused.values())),
        "confused": {name: others for name, others in confused.items() if others},
    }


def goals(result: Mapping[str, Any]) -> dict[str, bool]:
    """Return which of the goals are met."""
    known, counted = result["known_faults"]["all"], result["counts"]
    return {
        "every fault seen": known["seen"] == known["n"],
        "known faults, layer right": known["layer_right_of_equals"] >= NAMED * known["n"],
        "known faults, named": known["named"] == known["n"],
        **{
            f"held-out pairs of set {number}, layer right": pairs["right"] >= HELD_OUT * pairs["pairs"]
            for number, pairs in result["held_out"].items()
        },
        "seen by counts alone": counted["seen"] >= COUNTED * counted["n"],
        "no false alarm": not result["false_alarms"]["alarms"],
    }


def show(result: Mapping[str, Any]) -> None:
    """Print the tables."""
    known = result["known_faults"]
    heads = ("n", "seen", "layer", "of equals", "named", "one layer")
    print("known faults".ljust(24), *(head.rjust(max(7, len(head))) for head in heads))
    rows = {"all": known["all"], **known["by_layer"], **known["by_mutator"]}
    for name, row in rows.items():
        instead = ", ".join(f"{layer} {n}" for layer, n in list(row["instead"].items())[:3])
        print(
            f"{name:24} {row['n']:7,} {row['seen'] / row['n']:7.1%} {row['layer_right'] / row['n']:7.1%}"
            f" {row['layer_right_of_equals'] / row['n']:9.1%} {row['named'] / row['n']:7.1%}"
            f" {row['named_and_of_one_layer'] / row['n']:9.1%}  {instead}"
        )
    for number, pairs in result["held_out"].items():
        print(f"\nheld-out pairs of set {number} right: {pairs['right']} of {pairs['pairs']}", end="; ")
        print(f"chats right: {pairs['chats_right']:,} of {pairs['chats']:,}")
        for layer, (right, n) in pairs["by_layer"].items():
            print(f"    {layer:14} {right} of {n}")
    counted, apart, alarms = result["counts"], result["vocabularies"], result["false_alarms"]
    print(f"\nby counts: {counted['seen']:,} of {counted['n']:,} (template, fault) seen", end=", ")
    print(f"{counted['seen_with_a_free_constant']:,} where the server may hide tokens")
    print(f"vocabularies told apart: {apart['told_apart']} of {apart['pairs']} pairs")
    print(f"false alarms: {len(alarms['alarms'])} of {alarms['prompts']:,} honest prompts")
    for goal, met in result["goals"].items():
        print(f"{'met' if met else 'MISSED':7} {goal}")


def main(names: Sequence[str]) -> int:
    """Print the tables, keep the results of all templates, and return 1 where a goal is missed."""
    found = examined(names)
    models = sorted((one.model for one in found), key=lambda model: model.name)
    raised = [f"{one.model.name}: {alarm}" for one in found for alarm in one.alarms]
    result: dict[str, Any] = {
        "pairing": pairing(models),
        "known_faults": known_faults(found),
        "held_out": held_out(found),
        "counts": counts(found),
        "vocabularies": vocabularies(),
        "false_alarms": {"prompts": sum(one.asked for one in found), "alarms": raised},
    }
    result["goals"] = goals(result)
    show(result)
    if not names:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(result["goals"].values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
