"""What a model said of a corpus, stored once and compared with for ever."""
