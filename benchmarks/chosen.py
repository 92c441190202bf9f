"""Memory and time of train_on_chosen, compared with teacher forcing on all K listed answers with gradients.

An encoder-decoder Transformer reads each listed answer. Full: one pass over all B * K pairs with gradients, then
MinLoss. Chosen: all pairs are scored without gradients, B at a time; then one pass with gradients over the B nearest.
Both are measured in turn in one run. Their gradients are compared first, in float64. On a CPU, memory is the peak of
live tensors that the run creates, the gradients of the parameters included.

    python benchmarks/chosen.py [--device cpu|cuda] [--check]
"""

import argparse
import statistics

import torch
from torch import Tensor, nn

from measuring import Step, peak_mebibytes, seconds
from oneofmany.objectives import MinLoss, SequenceNLL, train_on_chosen

LIMIT = 1 / 3


class EncoderDecoder(nn.Module):
    def __init__(self, tokens: int, width: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens + 1, width)
        self.transformer = nn.Transformer(width, 4, layers, layers, 4 * width, dropout=0.0, batch_first=True)
        self.read = nn.Linear(width, tokens)

    def forward(self, inputs: Tensor, answers: Tensor) -> Tensor:
        start = torch.full_like(answers[:, :1], self.read.out_features)
        shifted = self.embed(torch.cat([start, answers[:, :-1]], 1))
        causal = nn.Transformer.generate_square_subsequent_mask(
            answers.shape[1], device=answers.device, dtype=shifted.dtype
        )
        return self.read(self.transformer(self.embed(inputs), shifted, tgt_mask=causal))


def ways(model: EncoderDecoder, inputs: Tensor, answers: Tensor) -> dict[str, Step]:
    objective, nll = MinLoss(), SequenceNLL()
    batch, listed = answers.shape[:2]

    def losses_of(rows: Tensor, chosen: Tensor) -> Tensor:
        return nll(model(inputs[rows], chosen), chosen)

    def full() -> None:
        model.zero_grad()
        rows = torch.arange(batch, device=answers.device).repeat_interleave(listed)
        objective.reduce(losses_of(rows, answers.flatten(0, 1)).view(batch, listed)).backward()

    def chosen() -> None:
        model.zero_grad()
        train_on_chosen(objective, losses_of, answers).loss.backward()

    return {"all K with gradients": full, "train_on_chosen": chosen}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=16, help="queries, B")
    parser.add_argument("--listed", type=int, default=8, help="listed answers of each, K")
    parser.add_argument("--length", type=int, default=32, help="tokens of an input and of an answer")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--check", action="store_true", help="fail if the memory is more than a third")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    device = torch.device(options.device)
    model = EncoderDecoder(options.tokens, options.width, options.layers).to(device)
    inputs = torch.randint(options.tokens, (options.batch, options.length)).to(device)
    answers = torch.randint(options.tokens, (options.batch, options.listed, options.length)).to(device)

    slopes = []
    for run in ways(model.double(), inputs, answers).values():
        run()
        slopes.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    difference = max(float((a - b).abs().max()) for a, b in zip(*slopes, strict=True))
    largest = max(float(a.abs().max()) for a in slopes[0])

    runs = ways(model.float(), inputs, answers)
    memory = {}
    for name, run in runs.items():
        model.zero_grad()
        memory[name] = peak_mebibytes(run, device)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            times[name].append(seconds(run, device.type))

    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {options.threads} thread(s)"
    size = f"B={options.batch} K={options.listed} length={options.length} width={options.width} layers={options.layers}"
    print(f"{size} float32, forward and backward, median of {options.rounds}; {where}; torch {torch.__version__}")
    print(f"largest difference of the gradients in float64: {difference:.1e} (largest gradient {largest:.1e})\n")
    print(f"{'':22}{'peak MiB':>10}{'ratio':>7}{'ms':>10}{'ratio':>7}")
    first = next(iter(runs))
    for name in runs:
        by_time = statistics.median(a / b for a, b in zip(times[name], times[first], strict=True))
        share = memory[name] / memory[first]
        print(f"{name:22}{memory[name]:10.0f}{share:7.2f}{statistics.median(times[name]) * 1e3:10.1f}{by_time:7.2f}")
    kept = memory["train_on_chosen"] <= LIMIT * memory[first]
    print(f"\nlimit of a third of the memory: {'kept' if kept else 'exceeded'}")
    if options.check and not kept:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
