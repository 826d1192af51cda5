"""What jobs of the tests of credits and turns on clusters ask for, and how long they run."""

from marketsched.mechanisms.resources.cluster import Resource

CPU, GPU = Resource("cpu", parts=2), Resource("gpu", parts=4, device=True)
NEEDS = (
    ({"cpu": 1}, ("a", "c")),
    ({"cpu": 4}, ("c", "a")),
    ({"cpu": 1.5, "gpu": 1}, ("a",)),
    ({"cpu": 1, "gpu": 0.5}, ("a",)),
    ({"cpu": 2, "gpu": 2}, ("a",)),
    ({"cpu": 7}, ("c",)),
)
LAWS = (((1, 4), (0.5, 0.5)), ((2, 6), (0.75, 0.25)), ((3, 12), (0.5, 0.5)))
