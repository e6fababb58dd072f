"""A model's template and tokenizer, without its weights."""

from __future__ import annotations

from pathlib import Path

from evals.tokens.named_format import NamedFormat
from evals.tokens.template_files import read_templates
from reference_engine.models.names import parse_name
from reference_engine.models.sources import find_tokenizer
from reference_engine.tokenizers.opening import open_tokenizer
from ringtrue.errors import UsageError


def open_format(reference: str, template: Path | None = None) -> NamedFormat:
    """Return template and tokenizer of the model that ``reference`` names.

    ``template`` is a file with another template for it.

    ``reference`` is a model's name as everywhere, or any file or folder that
    holds a tokenizer. Variants of a name change weights alone, and so nothing here.

    Raises:
        ModelError: nothing is found under the name, or it can't be read.
        UsageError: the template can't be read, or its file holds several.
    """
    codec = open_tokenizer(find_tokenizer(parse_name(reference).base))
    if template is None:
        return NamedFormat(reference, codec)
    held = read_templates([template])
    if len(held) > 1:
        raise UsageError(
            f"holds {len(held)} templates", where=str(template), remedy="Save the one you mean as a file"
        )
    return NamedFormat(f"{reference} with {template.name}", codec.with_template(held[0].source))
