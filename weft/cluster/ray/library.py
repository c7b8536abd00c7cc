"""Ray, which is an extra: `weft[ray]`."""

from __future__ import annotations

import importlib
from typing import Any

from weft.errors import ArgumentError


def library(module: str = "ray") -> Any:
    """Ray, or a module of it.

    Raises:
        ArgumentError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ArgumentError.here(
            'weft.cluster.ray: Ray is not installed; install: pip install "weft[ray]"'
        ) from error


def in_bundle(group: Any, number: int) -> Any:
    """Ray's option that places an actor in a bundle of a placement group."""
    strategies = library("ray.util.scheduling_strategies")
    return strategies.PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number)


def placed(bundles: list[dict[str, float]], strategy: str, timeout: float) -> Any:
    """A placement group whose resources are there.

    Raises:
        ArgumentError: the cluster does not have them before the timeout.
    """
    groups = library("ray.util.placement_group")
    group = groups.placement_group(bundles, strategy=strategy)
    if not group.wait(timeout):
        groups.remove_placement_group(group)
        total: dict[str, float] = {}
        for bundle in bundles:
            for name, amount in bundle.items():
                total[name] = total.get(name, 0) + amount
        raise ArgumentError.here(
            f"weft.cluster.ray: expected a cluster with {total} in {len(bundles)} bundles "
            f"({strategy}) within {timeout} s, got {library().cluster_resources()}"
        )
    return group


def removed(group: Any) -> None:
    """Gives the resources of a placement group back."""
    library("ray.util.placement_group").remove_placement_group(group)
