"""The part that asks a set of chats every night: are their token IDs the model's own, and still the same?"""
