"""The parts of an examination beside the context curve, each with its own questions and judge."""
