"""How a store of any earlier version becomes one of this version."""
