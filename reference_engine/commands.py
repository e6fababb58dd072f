"""``ringtrue serve``."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def serve(
    *,
    model: Annotated[
        str,
        typer.Option(
            help="NAME, Hugging Face id, folder or .gguf file, with variants: NAME@int4+bf16, "
            "NAME@rope:base=500000, NAME@tuned:steps=1:rate=1e-5."
        ),
    ] = "smollm2-135m",
    served_model_name: Annotated[
        str | None, typer.Option(help="The name clients ask for. Default: the model without variants.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8100,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    max_logprobs: Annotated[int, typer.Option(min=0, help="The largest k that may be asked for.")] = 20,
    api_key: Annotated[
        str | None, typer.Option(help="env:NAME of the variable that holds the key clients must send.")
    ] = None,
    drop_generation_prompt: Annotated[
        bool, typer.Option("--drop-generation-prompt", help="Fault: render chats without it.")
    ] = False,
    double_bos: Annotated[
        bool, typer.Option("--double-bos", help="Fault: begin every prompt with one BOS more.")
    ] = False,
    drop_default_system: Annotated[
        bool, typer.Option("--drop-default-system", help="Fault: leave the template's system prompt out.")
    ] = False,
    truncate_context: Annotated[
        int | None, typer.Option(min=1, help="Fault: keep the last so many prompt tokens, silently.")
    ] = None,
    corrupt_beyond: Annotated[
        int | None, typer.Option(min=1, help="Fault: corrupt hidden states from this position on.")
    ] = None,
    latency: Annotated[float, typer.Option(min=0, help="Fault: delay every answer, in seconds.")] = 0.0,
    temperature_factor: Annotated[
        float, typer.Option(min=0, help="Fault: draw at the asked temperature times this.")
    ] = 1.0,
    ignore_temperature: Annotated[
        bool, typer.Option("--ignore-temperature", help="Fault: always take the likeliest token.")
    ] = False,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Fault: draw from the so many likeliest tokens only.")
    ] = None,
    drop_top_token: Annotated[
        bool, typer.Option("--drop-top-token", help="Fault: never draw the likeliest token.")
    ] = False,
    ignore_seed: Annotated[
        bool, typer.Option("--ignore-seed", help="Fault: draw with a fresh seed each time.")
    ] = False,
    end_bias: Annotated[
        float, typer.Option(help="Fault: nats added to the tokens that end an answer; below 0: longer ones.")
    ] = 0.0,
    tool_fault: Annotated[
        list[str] | None,
        typer.Option(
            help="Fault: deliver answers spoiled by CODE; raw:CODE: have the model write them so. Repeatable."
        ),
    ] = None,
    tool_format: Annotated[
        str, typer.Option(help="Raw format of calls: hermes, qwen_xml, kimi, mistral, llama, harmony...")
    ] = "hermes",
    chat_template: Annotated[
        str | None,
        typer.Option(help="FILE, or 'tools': a template that shows tools. Default: the model's own."),
    ] = None,
    share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of sessions that meet the faults and the variant.")
    ] = 1.0,
    healthy_model: Annotated[
        str | None,
        typer.Option(help="What the other sessions get. Default: the model without variants but its dtype."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides which sessions meet the faults.")] = 0,
) -> None:
    """Serve a model on an OpenAI-compatible API, with faults if you ask for them."""
    # Only serving needs torch: the command line itself must stay quick.
    from reference_engine.engine import Engine
    from reference_engine.models.names import parse_name
    from reference_engine.server.app import create_app
    from reference_engine.server.faults import Faults
    from reference_engine.server.replica import Replica
    from reference_engine.server.serving import run_app
    from reference_engine.server.tool_calls.template import chat_template as read_template
    from ringtrue.secrets import resolve_secret

    replica = Replica(
        served_name=served_model_name or parse_name(model).base,
        model=model,
        faults=Faults(
            drop_generation_prompt=drop_generation_prompt,
            double_bos=double_bos,
            drop_default_system=drop_default_system,
            truncate_context=truncate_context,
            corrupt_beyond=corrupt_beyond,
            latency_s=latency,
            temperature_factor=temperature_factor,
            ignore_temperature=ignore_temperature,
            top_k=top_k,
            drop_top_token=drop_top_token,
            ignore_seed=ignore_seed,
            end_bias=end_bias,
            tool_faults=tuple(tool_fault or ()),
            share=share,
        ),
        healthy=healthy_model,
        max_logprobs=max_logprobs,
        seed=seed,
        tool_format=tool_format,
        chat_template=None if chat_template is None else read_template(chat_template),
    )
    key = resolve_secret(api_key, os.environ)
    with Engine(device=device) as engine:
        run_app(create_app(engine, replica, key=key), host, port, announce=typer.echo)
