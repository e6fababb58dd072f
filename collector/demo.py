"""``ringtrue demo``: replicas of the embedded model on loopback, honest and faulty, and one night."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from ringtrue.exit_codes import ExitCode
from ringtrue.report import Format, render_verdicts, report_console

NEXT = """\
What to type next:
  ringtrue serve --model smollm2-135m@int4 --port 8100     a faulty replica of your own (--help: more faults)
  ringtrue inspect http://127.0.0.1:8100 --model smollm2-135m
  ringtrue probe --url http://127.0.0.1:8100 --model smollm2-135m --dialect vllm"""

FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print the verdicts.")]


def demo(
    *,
    report: FormatOption = Format.TABLE,
    seed: Annotated[int, typer.Option(min=0, help="Choose other prompts.")] = 0,
) -> None:
    """Show honest and faulty replicas on this machine, one night, and the verdicts."""
    # The demo needs torch, which the command line must not load for its help.
    from collector.demo_night import DemoNight  # noqa: PLC0415
    from collector.planted import PLANTED, mismatches  # noqa: PLC0415

    aside = Console(stderr=True, highlight=False, markup=False)
    for planted in PLANTED:
        aside.print(f"{planted.name:>10}  {planted.what}")
    night = DemoNight(seed=seed).run(aside)
    render_verdicts(night.verdicts, report, report_console())
    wrong = mismatches(night.verdicts)
    for sentence in wrong:
        aside.print(f"not as planted: {sentence}")
    if not wrong:
        aside.print("\nEvery verdict is the planted one.")
    aside.print(
        f"The demo took {night.seconds:.0f} s: {len(PLANTED)} endpoints, "
        f"{night.prompt_tokens:,} tokens of text each."
    )
    if report is Format.TABLE:
        aside.print(f"\n{NEXT}")
    raise typer.Exit(ExitCode.DRIFT if wrong else ExitCode.FINE)
