"""What connections should get: to be laid beside a simulation of the same scenario.

    scenario = manypath.Scenario.from_file("mine.toml")
    manypath.theory.lmmf(scenario).connections.to_pandas()

    two = manypath.theory.Network(links=["100Mbit", "100Mbit"], connections=[[[0], [1]], [[1]]])
    manypath.theory.num(two, alpha=2).links["price"]
"""

from ._native import Allocation, Network, lmmf, num

__all__ = ["Allocation", "Network", "lmmf", "num"]
