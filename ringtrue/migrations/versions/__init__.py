"""The revisions of the store, one file each, in order of their number."""
