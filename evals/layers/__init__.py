"""The command ``layers``: where a candidate's loss comes from."""
