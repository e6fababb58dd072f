"""When a series of nights has changed, with a stated budget of false alarms."""
