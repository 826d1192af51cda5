"""Two offers on clusters: no report moves anything inside an entry, and no node is overfull."""

import pytest

from cluster_offers_markets import moved


@pytest.mark.parametrize("block", range(4))
def test_no_report_moves_anything_inside_an_entry(block):
    counts = [moved(seed, n=6) for seed in range(10 * block, 10 * block + 10)]
    assert sum(n for n, _ in counts) > 50 and not sum(found for _, found in counts)
