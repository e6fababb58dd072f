"""The setting of an examination that consists of the context curve alone."""

NO_PARTS = dict.fromkeys(
    ("prompts", "sampled", "sessions", "prefix_cache", "greedy", "border", "answers", "toolcalls"), 0
)

NO_PARTS_TOML = "".join(["[parts]\n", *(f"{part} = {count}\n" for part, count in NO_PARTS.items())])
