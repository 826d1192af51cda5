"""Clusters and shapes: units, pools, what fits when nothing runs, and errors by place."""

import pickle

import numpy as np
import pytest

from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape, demand_of, options_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue

RESOURCES = (Resource("cpu", 1000), Resource("memory", 1024), Resource("gpu", 1000, device=True))
GROUPS = (
    NodeGroup("a", "a100", 4, {"cpu": 96, "memory": 768, "gpu": 8}),
    NodeGroup("v", "v100", 8, {"cpu": 48, "memory": 384, "gpu": 4}),
    NodeGroup("w", "v100", 2, {"cpu": 96, "memory": 384, "gpu": 8}),
    NodeGroup("c", "cpu", 6, {"cpu": 64, "memory": 256}),
)
CLUSTER = Cluster(RESOURCES, GROUPS)


def test_layout_numbers_nodes_and_devices_pool_by_pool():
    cluster = Cluster(RESOURCES, GROUPS[::-1], pools=(("v", "w"), ("c",), ("a",)))
    layout = cluster.layout
    assert cluster.pool_names == ("v+w", "c", "a") and cluster.pool_kinds == ("v100", "cpu", "a100")
    assert layout.pool_begin.tolist() == [0, 10, 16, 20]
    assert cluster.node_name(0) == "v-0" and cluster.node_name(9) == "w-1" and cluster.node_name(19) == "a-3"
    for pool, (first, last) in enumerate(zip(layout.pool_begin, layout.pool_begin[1:], strict=False)):
        assert (layout.size[first:last].sum(0) == layout.pool_size[pool]).all()
    devices = [
        device for x in range(cluster.nodes) for device in range(layout.device_begin[x, 2], layout.device_begin[x, 3])
    ]
    assert devices == list(range(4 * 8 + 8 * 4 + 2 * 8))  # each device of one node, in order
    assert (layout.device_begin[:, :3] == layout.device_begin[:, :1]).all()  # none of divisible resources


def test_pools_by_kind_and_by_group():
    assert CLUSTER.pool_names == ("a100", "v100", "cpu")
    assert Cluster(RESOURCES, GROUPS, pools="group").pool_kinds == ("a100", "v100", "v100", "cpu")


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: Cluster((RESOURCES[0], RESOURCES[0]), GROUPS), "resources[1].name"),
        (lambda: Cluster(RESOURCES, ()), "groups"),
        (lambda: Cluster(RESOURCES, (NodeGroup("a", "a", 1, {"disk": 3}),)), "groups[0].each.disk"),
        (lambda: Cluster(RESOURCES, (NodeGroup("a", "a", 1, {"cpu": 0.0005}),)), "groups[0].each.cpu"),
        (lambda: Cluster(RESOURCES, (NodeGroup("a", "a", 1, {"gpu": 0.5}),)), "groups[0].each.gpu"),
        (lambda: Cluster(RESOURCES, GROUPS, pools="rack"), "pools"),
        (lambda: Cluster(RESOURCES, GROUPS, pools=(("a",), ("v", "w"))), "pools"),
        (lambda: Cluster(RESOURCES, GROUPS, pools=(("a", "v"), ("w",), ("c",))), "pools[0]"),
        (lambda: NodeGroup("a", "a", 0, {}), "nodes"),
        (lambda: MarketLimits(3, 9, 1, 3, 9.0, 9, CLUSTER), "capacity"),
    ],
)
def test_faults_of_a_cluster_are_placed(make, place):
    with pytest.raises(InvalidParameterError) as caught:
        make()
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("shape", "place"),
    [
        (lambda: Shape({}, {"a100": 3}), "each"),
        (lambda: Shape({"cpu": 0}, {"a100": 3}), "each"),
        (lambda: Shape({"cpu": -1}, {"a100": 3}), "each.cpu"),
        (lambda: Shape({"cpu": 1}, {}), "on"),
        (lambda: Shape({"cpu": 1}, {"a100": 0}), "on.a100"),
        (lambda: Shape({"cpu": 1}, {"a100": 3, "v100": (3, 4)}), "on"),
        (lambda: Shape({"cpu": 1}, {"a100": 3}, tasks=0), "tasks"),
        (lambda: Shape({"cpu": 1}, {"a100": 3}, worth=0.0), "worth"),
        (lambda: options_of([Shape({"disk": 1}, {"a100": 3})], CLUSTER), "shapes[0].each.disk"),
        (lambda: options_of([Shape({"gpu": 1.5}, {"a100": 3})], CLUSTER), "shapes[0].each.gpu"),
        (lambda: options_of([Shape({"cpu": 1}, {"h100": 3})], CLUSTER), "shapes[0].on.h100"),
        (lambda: options_of([Shape({"cpu": 128}, {"a100": 3})], CLUSTER), "shapes[0]"),
        (lambda: options_of([Shape({"gpu": 5}, {"a100": 3}, tasks=5)], CLUSTER), "shapes[0]"),
    ],
)
def test_faults_of_a_shape_are_placed(shape, place):
    with pytest.raises(InvalidReportError) as caught:
        shape()
    assert caught.value.place == place


def test_options_are_the_pools_that_hold_a_shape_when_empty():
    shapes = [
        Shape({"cpu": 48, "gpu": 8}, {"a100": 24, "v100": 30}),  # of the v100 only the two wide nodes
        Shape(
            {"gpu": 0.4}, {"v100": 6, "a100": 5}, tasks=120
        ),  # two shares on a device: 2 * 48 in v100, 2 * 32 in a100
        Shape({"gpu": 0.4}, {"v100": 6, "a100": 5}, tasks=96),
        Shape({"cpu": 10}, {"cpu": 9}, tasks=6, per_node=1, worth=0.5),
    ]
    with pytest.raises(InvalidReportError, match="fits no pool of v100"):
        options_of(shapes, CLUSTER)
    options = options_of([shapes[0], *shapes[2:]], CLUSTER)
    rows = list(zip(options.pool.tolist(), options.shape.tolist(), options.durations[:, 0].tolist(), strict=True))
    assert rows == [(0, 0, 24), (1, 0, 30), (1, 1, 6), (2, 2, 9)]  # by pool, then by shape
    assert options.total[2].tolist() == [0, 0, 96 * 400] and options.worth.tolist() == [1, 1, 1, 0.5]
    assert options.per_node.tolist() == [1, 1, 96, 1]


def test_amounts_become_whole_parts():
    shape = Shape({"cpu": 0.1, "memory": 0.25, "gpu": 2}, {"a100": 1})
    assert demand_of(shape, CLUSTER).tolist() == [100, 256, 2000]


def test_statement_with_shapes_is_copied_compared_and_moved_whole():
    shapes = (Shape({"gpu": 8}, {"a100": 24}), Shape({"gpu": 4}, {"v100": 36}, tasks=4))
    sow = StatementOfWork.of_shapes(3, DeadlineValue(120.0, 60), 5, shapes)
    plain = StatementOfWork(3, 1, DeadlineValue(120.0, 60), [(5, 24, 1.0)])
    again = pickle.loads(pickle.dumps(sow))
    assert again == sow and hash(again) == hash(sow) and again.shapes == shapes
    assert plain != sow and plain.shapes == ()
    assert sow.moved(13, sow.value).shapes == shapes
    assert pickle.loads(pickle.dumps(CLUSTER)) == CLUSTER and hash(CLUSTER) == hash(Cluster(RESOURCES, GROUPS))


def test_law_of_a_statement_is_that_of_its_first_shape():
    shapes = (Shape({"cpu": 4}, {"a100": (6, 12), "v100": (10, 20)}), Shape({"cpu": 8}, {"a100": (4, 7)}))
    sow = StatementOfWork.of_shapes(1, DeadlineValue(9.0, 60), 2, shapes, (0.25, 0.75), revealed=False)
    assert sow.law.durations.tolist() == [6, 12] and not sow.revealed
    with pytest.raises(InvalidReportError, match=r"shapes\[0\] on a100, 6, 12"):
        StatementOfWork(1, 1, DeadlineValue(9.0, 60), [(2, 7, 1.0)], shapes)
    with pytest.raises(InvalidReportError, match="tasks of"):
        StatementOfWork(1, 2, DeadlineValue(9.0, 60), [(2, 6, 1.0)], shapes)
    with pytest.raises(InvalidReportError, match=r"shapes\[1\]\.on"):
        StatementOfWork.of_shapes(1, DeadlineValue(9.0, 60), 2, [shapes[0], Shape({"cpu": 8}, {"a100": 4})], (0.5, 0.5))
    with pytest.raises(InvalidReportError, match="cases 1 and 2 of the law take 4 rounds on a100, and differ on v100"):
        same = Shape({"cpu": 8}, {"a100": [4, 4], "v100": [2, 8]})  # one case would never come true
        StatementOfWork.of_shapes(1, DeadlineValue(9.0, 60), 2, [same], (0.5, 0.5))


def test_market_takes_shapes_on_a_cluster_and_only_there():
    sizes = dict(horizon=50, max_concurrency=8, max_duration=30, max_value=200.0, max_delay=40)
    limits = MarketLimits(20, **sizes, cluster=CLUSTER)
    shaped = StatementOfWork.of_shapes(1, DeadlineValue(9.0, 30), 1, [Shape({"gpu": 8}, {"a100": 24})])
    long = StatementOfWork.of_shapes(1, DeadlineValue(9.0, 30), 1, [Shape({"gpu": 8}, {"a100": 24, "v100": 31})])
    plain = StatementOfWork(1, 1, DeadlineValue(9.0, 30), [(1, 24, 1.0)])
    limits.check_report("a", shaped, 1)
    with pytest.raises(InvalidReportError, match="job 'a': shapes are missing"):
        limits.check_report("a", plain, 1)
    with pytest.raises(InvalidReportError, match=r"shapes\[0\]\.on\.v100 = 31: expected whole rounds, 1 to 30"):
        limits.check_report("a", long, 1)
    with pytest.raises(InvalidReportError, match="identical"):
        MarketLimits(20, **sizes).check_report("a", shaped, 1)


def test_identical_nodes_are_the_special_case():
    layout = Cluster.of_nodes(7).layout
    assert layout.size.tolist() == [[7]] and layout.pool_begin.tolist() == [0, 1]
    options = options_of([Shape({"node": 1}, {"node": 5}, tasks=3)], Cluster.of_nodes(7))
    assert options.total.tolist() == [[3]] and np.array_equal(options.durations, [[5]])
