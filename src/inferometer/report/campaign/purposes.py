"""What each test is called, and what it is for."""

from __future__ import annotations

from typing import NamedTuple


class Purpose(NamedTuple):
    """The title of a test, and its objective in a sentence."""

    title: str
    objective: str


PURPOSES: dict[str, Purpose] = {
    "ttft": Purpose(
        "Time to First Token",
        "Find out how long it takes from the submission of a request to its first token, under the load levels given.",
    ),
    "throughput": Purpose(
        "Output Token Throughput",
        "Find the highest rate of output tokens that the system sustains, with the latency objectives met if there are "
        "any.",
    ),
    "tradeoff": Purpose(
        "Throughput-Latency Tradeoff",
        "Show what latency a throughput costs, from light load to beyond saturation.",
    ),
    "itl": Purpose(
        "Inter-Token Latency Distribution",
        "Describe how evenly tokens arrive while an answer is written, at several shares of the highest throughput.",
    ),
    "capacity": Purpose(
        "Concurrent Request Capacity",
        "Find out how many requests at once the system takes while it completes them, in time and without errors.",
    ),
    "fairness": Purpose(
        "Scheduling Fairness",
        "Find out how evenly requests of different kinds are served beside each other: whether short ones wait behind "
        "long ones, and whether any starve.",
    ),
    "prefix-cache": Purpose(
        "Prefix Cache Effectiveness",
        "Find out how much sooner the first token comes where a shared prefix is cached, and what throughput gains by "
        "it.",
    ),
    "memory-pressure": Purpose(
        "Memory Pressure Behavior",
        "Find out how the system behaves when more requests are in flight than its memory has room for.",
    ),
    "long-context": Purpose(
        "Long Context Scaling",
        "Find out how latency and throughput change with the length of the context.",
    ),
    "guardrail": Purpose(
        "Guardrail Overhead",
        "Find out what safety systems and content filters cost in latency and throughput, with content that they let "
        "pass.",
    ),
    "cold-start": Purpose(
        "Cold Start",
        "Find out how long a server takes from its start to its first healthy answer, and to the first token after "
        "that.",
    ),
}
"""By the name of the test."""
