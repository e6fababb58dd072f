"""What can be judged of an endpoint that gives tokens and no logprobs."""
