"""What disturbances cost a sweep of 1,000 runs on 64 GPUs, by the simulation of the queue."""

from oneofmany.launching.simulation import Scenario, simulate

SCENARIOS = {
    "undisturbed": Scenario(failures=0, preemptions=0),
    "usual cluster": Scenario(),
    "spot machines, notice": Scenario(failures=1, preemptions=12, retries=20),
    "spot machines, no notice": Scenario(failures=12, preemptions=0, retries=50),
    "the same, checkpoint 60 min": Scenario(failures=12, preemptions=0, retries=50, checkpoint=60),
    "stragglers": Scenario(spread=1.2),
    "100,000 runs, 512 GPUs": Scenario(jobs=100_000, workers=512, minutes=30, failures=2, preemptions=10, retries=20),
}


def main() -> None:
    print("$ python benchmarks/scaling.py\n# a simulation: the same numbers on every machine")
    print(f"{'':<28} {'hours':>6} {'busy':>6} {'idle end':>9} {'again':>7} {'restarts':>9} {'MB/s':>6} {'beats/s':>8}")
    for name, scenario in SCENARIOS.items():
        found = simulate(scenario, seed=1)
        assert found.finished == scenario.jobs
        print(
            f"{name:<28} {found.makespan / 60:>6.1f} {found.efficiency:>6.0%} {found.tail / 60:>7.1f} h "
            f"{found.lost / 60:>5.1f} h {found.restarts:>9,} {found.megabytes_per_second:>6.2f} "
            f"{found.metadata_per_second:>8.1f}"
        )


if __name__ == "__main__":
    main()
