"""A timetable: nine lessons of three classes in four hours. Nobody is at two places at once, and there is one lab."""

from oneofmany.problems import Problem, Rule, named_task

LESSONS = {  # lesson: (class, teacher, room)
    "1a-maths": ("1a", "Adams", "room-1"),
    "1a-physics": ("1a", "Brown", "lab"),
    "1a-music": ("1a", "Clark", "hall"),
    "1b-maths": ("1b", "Adams", "room-2"),
    "1b-chemistry": ("1b", "Brown", "lab"),
    "1b-sports": ("1b", "Davis", "hall"),
    "1c-maths": ("1c", "Adams", "room-3"),
    "1c-biology": ("1c", "Evans", "lab"),
    "1c-music": ("1c", "Clark", "room-3"),
}
HOURS = ("8:00", "9:00", "10:00", "11:00")
KINDS = ("class", "teacher", "room")


def timetable(hours: int = 4) -> Problem:
    """Return the problem: every hour, at most one lesson of each class, of each teacher and in each room."""
    rules = []
    for at, kind in enumerate(KINDS):
        for own in dict.fromkeys(about[at] for about in LESSONS.values()):
            lessons = [number for number, about in enumerate(LESSONS.values()) if about[at] == own]
            if len(lessons) > 1:
                rules += [Rule(kind, tuple(n * hours + hour for n in lessons), exact=False) for hour in range(hours)]
    return Problem("timetable", hours, variables=len(LESSONS), values=hours, rules=tuple(rules))


TASK = named_task("timetable", timetable, tuple(LESSONS), HOURS)

if __name__ == "__main__":
    import numpy as np

    from oneofmany.exact import count
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[4])
    free, fixed = np.zeros((1, len(LESSONS)), np.uint8), TASK.parse("1a-maths=8:00 1b-maths=9:00").values[None]
    print(f"{count(timetable(), free)[0]:,} timetables; {count(timetable(), fixed)[0]} with two lessons fixed")
