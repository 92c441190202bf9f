"""The means in a line of metrics."""

from oneofmany.training.metrics import averages
from oneofmany.training.phases import phases_of
from oneofmany.training.updating import MEASURED
from small_runs import small


def test_exploratory_shares_are_of_ms_queries_and_of_all():
    settings = small("selectr")
    selector, joint = phases_of(settings)[2:]
    sums = dict.fromkeys(MEASURED, 0.0) | {
        "queries": 40.0,
        "ms_queries": 10.0,
        "exploratory_loss": 4.0,
        "exploratory_hamming": 1.0,
    }
    line = averages(sums, 5, joint)
    shares = {name[12:]: share for name, share in line.items() if name.startswith("exploratory")}
    assert shares == {"ms_loss": 0.4, "ms_hamming": 0.1, "all_loss": 0.1, "all_hamming": 0.025}
    nothing = averages(sums | {"ms_queries": 0.0, "exploratory_loss": 0.0}, 5, joint)
    assert nothing["exploratory_ms_loss"] is None
    assert nothing["exploratory_all_loss"] == 0.0
    assert not any(name.startswith("exploratory") for name in averages(sums, 5, selector))
