"""Metrics for Prometheus: the state of the market, and the times of requests."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from marketsched.live.accounts import MICRO
from marketsched.live.job import STATES
from marketsched.live.service import LiveService


class Figures:
    """The metrics of one service; no label holds the name of an owner or a job."""

    def __init__(self, service: LiveService) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_OfMarket(service))
        self.seconds = Histogram(
            "marketsched_request_seconds",
            "Time to the first byte of an answer.",
            ("method", "route", "status"),
            registry=self._registry,
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0),
        )

    def text(self) -> bytes:
        """Return all of them in Prometheus' text format; for the thread of the service."""
        return generate_latest(self._registry)


class _OfMarket(Collector):
    def __init__(self, service: LiveService) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of this moment."""
        service, market = self._service, self._service.market
        yield GaugeMetricFamily("marketsched_round", "The round that is open.", market.round)
        yield GaugeMetricFamily("marketsched_capacity_nodes", "Nodes of the market.", market.config.capacity)
        usable = market.config.capacity if market.usable is None else market.usable
        yield GaugeMetricFamily("marketsched_usable_nodes", "Nodes that can be used, as last remarked.", usable)
        yield GaugeMetricFamily("marketsched_load_nodes", "Nodes busy in the round cleared last.", market.load)
        jobs = GaugeMetricFamily("marketsched_jobs", "Jobs ever submitted, by what became of them.", labels=["state"])
        for state in STATES:
            jobs.add_metric([state], market.tally[state])
        yield jobs
        for name, text, value in (
            ("rounds_short_of_nodes", "Rounds cleared with fewer nodes than the capacity.", market.short_rounds),
            ("journal_rows", "Accepted events.", service.last_seq),
            ("rebuilds", "Times the market was made anew from its journal since the start.", service.restarts),
        ):
            yield CounterMetricFamily(f"marketsched_{name}", text, value)
        for name, text, micro in (
            ("deposited_credits", "Credits that operators deposited.", market.accounts.deposited),
            ("revenue_credits", "Credits that jobs were charged.", market.accounts.market),
        ):
            yield GaugeMetricFamily(f"marketsched_{name}", text, micro / MICRO)
        overdue = service.clock.overdue(market.round)
        if overdue is not None:
            yield GaugeMetricFamily(
                "marketsched_round_overdue_seconds", "For how long the open round is over.", max(0.0, overdue)
            )
            offset = service.clock.offset()
            yield GaugeMetricFamily(
                "marketsched_clock_offset_seconds", "By how much the system's clock was set since the start.", offset
            )
