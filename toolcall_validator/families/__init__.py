"""Raw completions, format by format: what the model wrote, before any server's parser had a say."""

from toolcall_validator.families.blame import Answered, blame
from toolcall_validator.families.formats import FORMATS, Format, parse, render
from toolcall_validator.families.leaks import LEAKS
from toolcall_validator.families.parsed import Leftover, Parsed, Problem, RawCall, Schemas, Trouble

__all__ = [
    "FORMATS",
    "LEAKS",
    "Answered",
    "Format",
    "Leftover",
    "Parsed",
    "Problem",
    "RawCall",
    "Schemas",
    "Trouble",
    "blame",
    "parse",
    "render",
]
