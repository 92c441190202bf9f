"""Import of sequences: any fields, tokens and lengths; the file; `collate` and `DataLoader`; CMUdict."""

import json

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from oneofmany.data import Dataset, Fields, SequenceData, collate, import_data, import_sequences, load_data
from oneofmany.data.batches import SequencesOnDevice
from oneofmany.data.cmudict import build_cmudict
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.pairs import export_parquet
from oneofmany.files import FileError
from oneofmany.objectives import MinLoss
from oneofmany.problems import SequenceProblem

WORDS = [
    {"word": "tomato", "sound": "t ah m ey t ow"},
    {"word": "tomato", "sound": "t ah m aa t ow"},
    {"word": "so", "sound": "s ow"},
    {"word": "tomato", "sound": "t ah m ey t ow"},
]
SOUND = Fields("word", "sound")


def said(data: SequenceData) -> dict[str, list[str]]:
    """Words -> their answers, as text."""
    inputs, outputs = ([None, *tokens] for tokens in (data.problem.inputs, data.problem.outputs))
    return {
        "".join(inputs[t] for t in data.input_of(q)): [" ".join(outputs[t] for t in a) for a in data.solutions_of(q)]
        for q in range(len(data))
    }


EXPECTED = {"tomato": ["t ah m ey t ow", "t ah m aa t ow"], "so": ["s ow"]}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "parquet", "memory", "grouped"])
def test_every_source_gives_the_same_data(tmp_path, kind):
    path, fields = tmp_path / f"words.{kind}", SOUND
    if kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, WORDS)))
    elif kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        path.write_text(f"sound{mark}word\n" + "".join(f"{w['sound']}{mark}{w['word']}\n" for w in WORDS))
    elif kind == "parquet":
        parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        parquet.write_table(pyarrow.Table.from_pylist(WORDS), path)
    elif kind == "memory":
        path = WORDS
    else:
        path = [{"word": w, "sounds": answers} for w, answers in EXPECTED.items()]
        fields = Fields("word", outputs="sounds")
    data, summary = import_sequences(path, fields=fields, output_tokens="words")
    assert said(data) == EXPECTED
    assert data.multiple.tolist() == [True, False]
    if kind != "grouped":
        assert (summary.pairs, summary.repeated_pairs, summary.ms_queries) == (4, 1, 1)
        assert "1 inputs (50.0%) have several answers" in summary.sentence()


def test_a_hugging_face_dataset():
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    data, _ = import_sequences(datasets.Dataset.from_list(WORDS), fields=SOUND, output_tokens="words")
    assert said(data) == EXPECTED


def test_token_ids_of_any_size_and_nested_parquet(tmp_path):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    rows = [{"ids": [50256, 7], "answers": [[100_000], [7, 50256, 7]]}, {"ids": [3], "answers": [[1]]}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "ids.parquet")
    data, _ = import_data(tmp_path / "ids.parquet", fields=Fields("ids", outputs="answers"))
    assert isinstance(data, SequenceData)
    assert data.problem.inputs == (3, 7, 50256)
    assert data.problem.outputs == (1, 7, 50256, 100_000)
    assert [a.tolist() for a in data.solutions_of(0)] == [[4], [2, 3, 2]]
    export_parquet(data, tmp_path / "again.parquet")
    again, _ = import_data(tmp_path / "again.parquet", fields=Fields(outputs="outputs"))
    assert again.header()["checksum"] != data.header()["checksum"]  # another file, other fields
    assert (again.inputs == data.inputs).all()
    assert (again.outputs == data.outputs).all()


@pytest.mark.parametrize(
    ("given", "output", "fill_in"),
    [
        ("1.3", "123", True),
        ([0, 2], [1, 2], True),
        ("cat", "dog", False),
        ([5, 2], [1, 2], False),
        ([0, 2], [1, 300], False),
        ([0, 2], [1, 2, 3], False),
        ("a b", "c", False),
    ],
)
def test_the_first_record_decides_the_form(given, output, fill_in):
    data, _ = import_data([{"input": given, "output": output}])
    assert isinstance(data, Dataset if fill_in else SequenceData)


def test_arrays_tensors_and_tuples_are_lists():
    """As datasets in the formats of NumPy and PyTorch give them."""
    for made in (np.array, torch.tensor, tuple):
        data, _ = import_data([{"input": made([300, 2]), "output": made([7, 8, 9])}])
        assert isinstance(data, SequenceData)
        assert data.problem.outputs == (7, 8, 9)
        assert isinstance(import_data([{"input": made([0, 2]), "output": made([1, 2])}])[0], Dataset)
    grouped = [{"input": np.array([5]), "outputs": np.array([[1, 2], [3, 4]])}]
    data, _ = import_data(grouped, fields=Fields(outputs="outputs"))
    assert [answer.tolist() for answer in data.solutions_of(0)] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("kind", ["memory", "jsonl", "parquet"])
def test_a_label_is_one_token(tmp_path, kind):
    records = [{"input": "spam", "output": 70_000}, {"input": "spam", "output": 3}]
    path = tmp_path / f"labels.{kind}"
    if kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, records)))
    elif kind == "parquet":
        parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        parquet.write_table(pyarrow.Table.from_pylist(records), path)
    data, _ = import_data(records if kind == "memory" else path)
    assert [answer.tolist() for answer in data.solutions_of(0)] == [[2], [1]]
    assert data.problem.outputs == (3, 70_000)


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0b", "\x1c"])
def test_only_line_breaks_end_a_row_of_csv(tmp_path, mark):
    (tmp_path / "a.csv").write_bytes(f"input,output\r\na{mark}b,x\r\nc,y\r\n".encode())
    data, _ = import_data(tmp_path / "a.csv")
    assert ["".join(data.problem.inputs[t - 1] for t in data.input_of(q)) for q in (0, 1)] == [f"a{mark}b", "c"]


def test_a_form_that_was_asked_for():
    assert isinstance(import_data([{"input": "1.", "output": "12"}], form="sequences")[0], SequenceData)
    with pytest.raises(FileError, match="--form sequences takes inputs and outputs of any lengths"):
        import_data([{"input": "1.", "output": "123"}], form="fill-in")
    with pytest.raises(ValueError, match="nqueens has rules"):
        import_data([{"input": "1.", "output": "12"}], form="sequences", task="nqueens")


def test_splits_are_by_input_and_share_the_vocabulary():
    records = [{"input": f"w{n}", "output": f"{n}{k}"} for n in range(300) for k in range(2)]
    parts = [import_sequences(records, split=split)[0] for split in ("train", "dev", "test")]
    inputs = [{tuple(part.input_of(q)) for q in range(len(part))} for part in parts]
    assert sum(map(len, inputs)) == len(set.union(*inputs)) == 300
    assert len(parts[0]) > 200
    assert all(part.listed.tolist() == [2] * len(part) for part in parts)
    assert all(part.problem.same_as(parts[0].problem) for part in parts)
    # More data does not move an input to another split.
    more, _ = import_sequences([*records, {"input": "new", "output": "x"}], split="dev")
    first = {token: i for i, token in enumerate(parts[1].problem.inputs, 1)}
    words = {"".join(more.problem.inputs[t - 1] for t in more.input_of(q)) for q in range(len(more))} - {"new"}
    assert {tuple(first[c] for c in word) for word in words} == inputs[1]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"input": "", "output": "a"}, "pair 1 of the records: input is empty"),
        ({"input": "a", "output": 1.5}, "output: expected a text, a list of tokens or a whole number, got float"),
        ({"input": "a", "output": True}, "output: expected a text, a list of tokens or a whole number, got bool"),
        ({"input": "a", "output": None}, "output: expected a text, a list of tokens or a whole number, got NoneType"),
        ({"input": ["a", [1]], "output": "a"}, "input: expected texts or whole numbers as tokens"),
        ({"input": "a"}, "expected an object with the fields input and output, got input"),
        (["a"], "expected an object with the fields input and output, got list"),
    ],
)
def test_bad_records(record, message):
    with pytest.raises(FileError, match=message):
        import_sequences([record])


def test_bad_files(tmp_path):
    (tmp_path / "a.csv").write_text('input,output\n"a,b\n')
    with pytest.raises(FileError, match="is not CSV"):
        import_sequences(tmp_path / "a.csv")
    with pytest.raises(FileError, match="one output a row"):
        import_sequences(tmp_path / "a.csv", fields=Fields(outputs="output"))
    with pytest.raises(FileError, match="a list of at least one output"):
        import_sequences([{"input": "a", "outputs": []}], fields=Fields(outputs="outputs"))
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(FileError, match=r"ends in .jsonl, .parquet, .csv or .tsv"):
        import_sequences(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="read twice"):
        import_data(iter(WORDS), fields=SOUND)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "input,output\nb,x\na,t ah, m ey\n", "pair 2 of .*: expected 2 columns as in the header, got 3"),
        ("a.csv", "input,output,output\na,b,c\n", "has several columns output: expected one"),
        ("a.csv", f"input,output\na,b\nc,{'d' * 200_000}\n", "line 3 of .* is not CSV: field larger than field limit"),
        ("a.jsonl", '{"input": "a", "output": ' + "9" * 5000 + "}", "line 1 of .* is not JSON: Exceeds the limit"),
        ("a.jsonl", "\n", "a.jsonl: expected at least one pair, got none"),
    ],
)
def test_nothing_of_a_file_is_dropped(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(FileError, match=message):
        import_data(tmp_path / name)


def test_the_file(tmp_path):
    data, _ = import_sequences(WORDS, fields=SOUND, output_tokens="words")
    data.save(tmp_path / "words.safetensors")
    again = load_data(tmp_path / "words.safetensors")
    assert isinstance(again, SequenceData)
    assert again.header() == data.header()
    assert said(again) == EXPECTED
    assert said(again.take(np.array([1, 0, 1]))) == EXPECTED
    build_nqueens(4, 2).save(tmp_path / "boards.safetensors")
    assert isinstance(load_data(tmp_path / "boards.safetensors"), Dataset)
    with pytest.raises(FileError, match="holds sequences, not queries with variables"):
        Dataset.load(tmp_path / "words.safetensors")
    with pytest.raises(FileError, match="damaged or not a dataset of sequences"):
        SequenceData.load(tmp_path / "boards.safetensors")
    content = bytearray((tmp_path / "words.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "bad.safetensors").write_bytes(content)
    with pytest.raises(FileError, match="altered or damaged"):
        load_data(tmp_path / "bad.safetensors")


def test_other_vocabularies():
    data, _ = import_sequences(WORDS, fields=SOUND, output_tokens="words")
    wider = SequenceProblem(("z", *data.problem.inputs[::-1]), ("x", *data.problem.outputs), 9)
    assert said(data.in_words_of(wider)) == EXPECTED
    with pytest.raises(ValueError, match=r"inputs: the vocabulary of the training data has no 't'"):
        data.in_words_of(SequenceProblem(("z", "o", "m", "a", "s"), data.problem.outputs, 9))


def test_batches_of_a_device():
    data, _ = import_sequences(WORDS, fields=SOUND, output_tokens="words")
    batch = SequencesOnDevice(data).batch(torch.tensor([1, 0]))
    assert batch.lengths.tolist() == [2, 6]
    assert batch.mask.tolist() == [[True, False], [True, True]]
    for row, query in enumerate((1, 0)):
        assert batch.query[row, : batch.lengths[row]].tolist() == data.input_of(query).tolist()
        assert (batch.query[row, batch.lengths[row] :] == 0).all()
        for place, answer in enumerate(data.solutions_of(query)):
            own = batch.solutions[row, place]
            assert own[own != -100].tolist() == answer.tolist()
    assert SequencesOnDevice(data, listed=1).batch(torch.tensor([0])).mask.tolist() == [[True]]
    pair = SequencesOnDevice(data).batch(torch.tensor([1]), "pairs")
    assert pair.solutions[0, 0].tolist() == data.solutions_of(0)[1].tolist()


def test_a_data_loader():
    data, _ = import_sequences(WORDS, fields=SOUND, output_tokens="words")
    (batch,) = DataLoader(data, batch_size=2, collate_fn=collate)
    placed = SequencesOnDevice(data).batch(torch.arange(2))
    for name in ("query", "lengths", "solutions", "mask"):
        assert (batch[name] == getattr(placed, name)).all()
    boards = build_futoshiki(4, 6, 2, 20, seed=1)
    (batch,) = DataLoader(boards, batch_size=20, collate_fn=collate)
    assert batch["solutions"].shape == (20, boards.listed.max(), 16)
    assert (batch["mask"].sum(1).numpy() == boards.listed).all()
    assert (batch["relations"].numpy() == boards.relations).all()
    logits = torch.zeros(20, 16, 4, requires_grad=True)
    MinLoss()(logits, batch["solutions"], batch["mask"]).backward()
    with pytest.raises(IndexError):
        boards[20]


def test_collate_empty_answers_narrow_types_and_labels():
    batch = collate([{"query": [], "solutions": [[], [4, 5]]}, {"query": [7], "solutions": [[6]]}])
    assert batch["query"].tolist() == [[0], [7]]
    assert batch["solutions"].tolist() == [[[-100, -100], [4, 5]], [[6, -100], [-100, -100]]]
    assert batch["query"].dtype == batch["solutions"].dtype == torch.int64
    narrow = np.array([[1, 2]], np.uint8)
    batch = collate([{"query": narrow[0], "solutions": narrow}, {"query": [3], "solutions": [[1], [2]]}])
    assert batch["solutions"].tolist() == [[[1, 2], [-100, -100]], [[1, -100], [2, -100]]]
    batch = collate([{"query": [1], "solutions": [3, 5]}, {"query": [2], "solutions": [4]}])  # labels
    assert batch["solutions"].tolist() == [[[3], [5]], [[4], [-100]]]
    batch = collate([{"query": [0.5], "solutions": [[1, 2], [0.25, 0.75]]}])  # nothing is rounded
    assert batch["solutions"].tolist() == [[[1.0, 2.0], [0.25, 0.75]]]
    assert collate([{"query": [1], "solutions": [[]]}])["solutions"].tolist() == [[[-100]]]
    with pytest.raises(ValueError, match="item 1 has no field solutions"):
        collate([{"query": [1], "solutions": [[1]]}, {"query": [1]}])
    with pytest.raises(ValueError, match="expected answers of one axis"):
        collate([{"query": [1], "solutions": [[[1], [2]]]}])


def test_a_loader_with_workers():
    data, _ = import_sequences(WORDS, fields=SOUND, output_tokens="words")
    loader = DataLoader(data, batch_size=1, collate_fn=collate, num_workers=1, multiprocessing_context="spawn")
    assert [batch["mask"].sum().item() for batch in loader] == [2, 1]


def test_collate_lists():
    batch = collate([{"query": [1], "solutions": [[0.5], [1.5]]}, {"query": [1, 2], "solutions": [[2.5]]}])
    assert batch["query"].tolist() == [[1, 0], [1, 2]]
    assert batch["mask"].tolist() == [[True, True], [True, False]]
    assert batch["solutions"][0].tolist() == [[0.5], [1.5]]
    with pytest.raises(ValueError, match="item 0 has no answer"):
        collate([{"query": [1], "solutions": []}])
    with pytest.raises(ValueError, match="real numbers need one length"):
        collate([{"query": [1], "solutions": [[0.5], [1.5, 2.0]]}])


CMU = """;;; a comment
tomato T AH0 M EY1 T OW2
tomato(2) T AH0 M AA1 T OW2 # british
record R AH0 K AO1 R D
record(2) R EH1 K ER0 D
record(3) R IH0 K AO1 R D
abc's EY1 B IY1 S IY1 Z
live L AY1 V
live(2) L AY2 V
"""


def test_cmudict(tmp_path):
    (tmp_path / "cmudict.dict").write_text(CMU)
    data = build_cmudict(tmp_path / "cmudict.dict")
    assert said(data)["tomato"] == ["T AH0 M EY1 T OW2", "T AH0 M AA1 T OW2"]
    assert said(data)["abc's"] == ["EY1 B IY1 S IY1 Z"]
    assert data.listed.tolist() == [2, 3, 1, 2]
    plain = build_cmudict(tmp_path / "cmudict.dict", stress=False)
    assert plain.listed.tolist() == [2, 3, 1, 1]
    assert said(plain)["live"] == ["L AY V"]
    several = build_cmudict(tmp_path / "cmudict.dict", stress=False, several=True)
    assert several.listed.tolist() == [2, 3]
    assert said(several) == {word: sounds for word, sounds in said(plain).items() if len(sounds) > 1}
    (tmp_path / "marked.dict").write_text(CMU, encoding="utf-8-sig")
    assert said(build_cmudict(tmp_path / "marked.dict")) == said(data)
    (tmp_path / "bad.dict").write_text("word\n")
    with pytest.raises(FileError, match=r"line 1 of .*: expected a word and its phones"):
        build_cmudict(tmp_path / "bad.dict")


def test_the_commands(tmp_path, capsys):
    from oneofmany.cli import run

    (tmp_path / "words.csv").write_text("word,sound\n" + "".join(f"{w['word']},{w['sound']}\n" for w in WORDS))
    (tmp_path / "cmudict.dict").write_text(CMU)
    fields = ["--input-field", "word", "--output-field", "sound", "--output-tokens", "words"]
    out = str(tmp_path / "words.safetensors")
    assert run(["data", "import", str(tmp_path / "words.csv"), *fields, "--out", out]) == 0
    assert "4 pairs of 2 inputs (1 repeated pairs left out)" in capsys.readouterr().out
    assert run(["data", "show", out]) == 0
    assert "5 of inputs, 7 of outputs" in capsys.readouterr().out
    out = str(tmp_path / "cmu.safetensors")
    assert run(["data", "cmudict", str(tmp_path / "cmudict.dict"), "--no-stress", "--out", out]) == 0
    assert "4 queries, 2 of them with several solutions" in capsys.readouterr().err
