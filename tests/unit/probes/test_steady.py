from __future__ import annotations

import gc

from probes.steady import steady_collector


def test_the_collector_works_seldom_inside_and_as_before_after_it() -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    with steady_collector():
        assert gc.get_threshold()[0] > before[0][0]
        assert gc.get_freeze_count() > before[1]
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
