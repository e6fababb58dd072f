"""The shared vocabulary of ringtrue: records, seams, statistics, verdicts, storage and the command line."""
