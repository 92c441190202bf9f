"""Colour a map: neighbouring countries get different colours. The map is South America, which needs four colours."""

from oneofmany.problems import Problem, Rule, named_task

BORDERS = {
    "Argentina": ("Bolivia", "Brazil", "Chile", "Paraguay", "Uruguay"),
    "Bolivia": ("Brazil", "Chile", "Paraguay", "Peru"),
    "Brazil": ("Colombia", "Guiana", "Guyana", "Paraguay", "Peru", "Suriname", "Uruguay", "Venezuela"),
    "Chile": ("Peru",),
    "Colombia": ("Ecuador", "Peru", "Venezuela"),
    "Ecuador": ("Peru",),
    "Guiana": ("Suriname",),
    "Guyana": ("Suriname", "Venezuela"),
    "Paraguay": (),
    "Peru": (),
    "Suriname": (),
    "Uruguay": (),
    "Venezuela": (),
}
COUNTRIES = tuple(BORDERS)
COLOURS = ("red", "green", "blue", "yellow")


def south_america(colours: int = 4) -> Problem:
    """Return the problem: for every border and colour, at most one of the two countries has the colour."""
    rules = [
        Rule("border", tuple(COUNTRIES.index(country) * colours + colour for country in (one, other)), exact=False)
        for one, others in BORDERS.items()
        for other in others
        for colour in range(colours)
    ]
    return Problem("map", colours, variables=len(COUNTRIES), values=colours, rules=tuple(rules))


TASK = named_task("map", south_america, COUNTRIES, COLOURS)

if __name__ == "__main__":
    import numpy as np

    from oneofmany.exact import count
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[4])
    for colours in (2, 3, 4):
        number = count(south_america(colours), np.zeros((1, len(COUNTRIES)), np.uint8))[0]
        print(f"South America has {number:,} colourings with {colours} colours")
