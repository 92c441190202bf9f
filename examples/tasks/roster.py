"""A shift roster: four people and five days. Counts, forbidden pairs and an implication, as rules."""

from oneofmany.problems import Problem, Rule, forbid, implies, named_task

PEOPLE = ("Ann", "Bob", "Cid", "Dee")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri")
SHIFTS = ("off", "early", "late")


def choice(person: int, day: int, shift: str) -> int:
    """The number of the choice "this person has this shift on this day"."""
    return (person * len(DAYS) + day) * len(SHIFTS) + SHIFTS.index(shift)


def roster(most: int = 4) -> Problem:
    """Return the problem; everybody works at most this many days."""
    rules, people, days = [], range(len(PEOPLE)), range(len(DAYS))
    for day in days:
        rules.append(Rule("late", tuple(choice(person, day, "late") for person in people)))
        rules.append(Rule("early", tuple(choice(person, day, "early") for person in people), low=1, high=2))
        # Ann is new: if she is late, Bob works, too.
        rules += implies("with", choice(0, day, "late"), [choice(1, day, "early"), choice(1, day, "late")])
    for person in people:
        works = [choice(person, day, shift) for day in days for shift in ("early", "late")]
        rules.append(Rule("work", tuple(works), low=2, high=most))
        for day in days[:-1]:  # nobody is early after a late shift
            rules += forbid("rest", [choice(person, day, "late"), choice(person, day + 1, "early")])
    return Problem("roster", most, variables=len(PEOPLE) * len(DAYS), values=len(SHIFTS), rules=tuple(rules))


TASK = named_task("roster", roster, [f"{person}-{day}" for person in PEOPLE for day in DAYS], SHIFTS)

if __name__ == "__main__":
    from oneofmany.exact import count
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[4])
    query = TASK.parse("Ann-Mon=late Bob-Tue=early")
    print("rosters with two shifts given:", count(query.problem, query.values[None])[0])
