"""``oneofmany data`` for data from elsewhere and data files: import, cmudict, export, show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import tyro

from oneofmany.cli.data import SplitOption, save
from oneofmany.cli.options import Flag, Json, TaskFile, option, use_task
from oneofmany.cli.terminal import results, say
from oneofmany.cli.text import printable
from oneofmany.files import check_writable


def import_pairs(
    pairs: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PAIRS")],
    out: Path,
    input_field: str = "input",
    output_field: str = "output",
    outputs_field: Annotated[str | None, option("NAME", "one output a record")] = None,
    form: Annotated[Literal["fill-in", "sequences"] | None, option("FORM", "the first record decides")] = None,
    input_tokens: Literal["characters", "words"] = "characters",
    output_tokens: Literal["characters", "words"] = "characters",
    split: SplitOption = None,
    task: Annotated[str | None, option("TASK", "data without rules")] = None,
    task_file: TaskFile = None,
    force: Flag = False,
) -> None:
    """Group your own input-output records into inputs with their listed answers, and say how many have several.

    Example: oneofmany data import pairs.jsonl --out mine.safetensors

    Example: oneofmany data import words.csv --input-field word --output-field sound --output-tokens words \\
        --split train --out train.safetensors

    Args:
        pairs: a .jsonl, .parquet, .csv or .tsv file of records.
        out: the file to write (.safetensors).
        input_field: the field of the input.
        output_field: the field of one right output; several records may have the same input.
        outputs_field: a field with the list of all right outputs, instead of --output-field.
        form: fill-in, if the output fills the blanks (0 or .) of an input of the same length, up to value 255;
            sequences for texts and lists of any lengths and tokens.
        input_tokens: of sequences: how a text of an input becomes tokens; the elements of a list are tokens.
        output_tokens: of sequences: how a text of an output becomes tokens.
        split: keep only the inputs of this split; a hash of the input decides its split.
        task: a task, if the pairs are in its text form; its rules then check every output.
        force: overwrite an existing file.
    """
    use_task(task_file)
    check_writable(out, force)
    from oneofmany.data.importing import import_data
    from oneofmany.data.records import Fields

    dataset, summary = import_data(
        pairs,
        task=task,
        form=form,
        fields=Fields(input_field, output_field, outputs_field),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        split=split,
    )
    dataset.save(out, force=force)
    print(summary.sentence())
    kind = "sequences" if dataset.problem.task == "sequences" else "fill-in queries"
    say(f"wrote {out}: {len(dataset):,} inputs, as {kind}")


def cmudict(
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    out: Path,
    no_stress: Flag = False,
    several: Flag = False,
    split: SplitOption = None,
    force: Flag = False,
) -> None:
    """Build pronunciations of English words from a file of the CMU Pronouncing Dictionary, which you name.

    Example: oneofmany data cmudict cmudict.dict --split train --out train.safetensors

    The input is the spelling, the answers are all listed pronunciations. Comments and the numbers of variants, (2), are
    left out.

    Args:
        file: the dictionary's text file (cmudict.dict).
        out: the file to write (.safetensors).
        no_stress: leave out the stress marks of vowels, as most published work does.
        several: keep only the words with several pronunciations.
        split: keep only the words of this split; a hash of the word decides its split.
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.cmudict import build_cmudict

    save(build_cmudict(file, stress=not no_stress, several=several, split=split), out, force)


def export(
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    out: Path,
    pairs: Flag = False,
    task_file: TaskFile = None,
    force: Flag = False,
) -> None:
    """Write a data set as a Parquet file.

    Example: oneofmany data export train.safetensors --out train.parquet

    Args:
        file: the data file.
        out: the .parquet file to write.
        pairs: write one row per (input, output) pair, as `data import` reads them, instead of one per query.
        force: overwrite an existing file.
    """
    use_task(task_file)
    check_writable(out, force)
    from oneofmany.data.pairs import export_parquet
    from oneofmany.data.sequences import load_data

    export_parquet(load_data(file), out, pairs=pairs, force=force)
    say(f"wrote {out}")


def show(
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    task_file: TaskFile = None,
    as_json: Json = False,
) -> None:
    """Describe a data set: the statistics of the paper's Table 1, and histograms of solutions and givens.

    Example: oneofmany data show train.safetensors

    Args:
        file: the data file.
        as_json: print JSON.
    """
    use_task(task_file)
    from oneofmany.data.sequences import SequenceData, load_data
    from oneofmany.data.statistics import sequence_statistics, statistics

    data = load_data(file)
    about = sequence_statistics(data) if isinstance(data, SequenceData) else statistics(data)
    if as_json:
        print(json.dumps(about, indent=2))
        return
    from rich.table import Table

    console = results()
    table = Table(
        title=printable(f"{about['task']} {about['size']}"), title_justify="left", show_header=False, box=None
    )
    rows = {
        "queries": f"{about['queries']:,}",
        "MS queries": f"{about['ms_queries']:,} ({about['ms_percent']:.2f} %)",
        "solutions per MS query": f"{about['solutions_per_ms_query']:.2f} (listed {about['listed_per_ms_query']:.2f})",
        "most solutions": f"{about['most_solutions']:,}",
        "built": ", ".join(f"{key} {value}" for key, value in about["built"].items() if value is not None),
        "checksum": about["checksum"],
    }
    if "vocabulary" in about:
        rows["tokens"] = "{inputs:,} of inputs, {outputs:,} of outputs".format(**about["vocabulary"])
    else:
        rows["largest Hamming distance"] = f"{about['largest_hamming_distance']}"
        rows["groups"] = f"{about['groups']:,}"
    if about["unknown_totals"]:
        rows["unknown totals"] = f"{about['unknown_totals']:,} queries: their listed solutions are counted"
    for name, value in rows.items():
        table.add_row(name, printable(value))
    console.print(table)
    lengths = (("input", "input_lengths"), ("output", "output_lengths"))
    for title, name in (("solutions", "solution_counts"), *((("givens", "givens"),) if "givens" in about else lengths)):
        histogram = about[name]
        most = max(histogram.values(), default=1)
        console.print(f"\n{title:>9}  queries")
        for value, number in histogram.items():
            console.print(f"{value:>9}  {number:>9,}  {'█' * max(1, round(40 * number / most))}")
