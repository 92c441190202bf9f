"""With validate=False no values are read: full-graph compilation, tracing without data, capture on a GPU."""

import warnings

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode

from oneofmany.objectives import BinaryNLL, CategoricalNLL, CCLoss, IExplR, MinLoss, SelectR

from .cases import FORMS, make_case

# Torch's compiler warns about itself while it is loaded.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch", "ignore:.*deprecated:DeprecationWarning")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def every_loss(validate, pair_loss=CategoricalNLL):
    """Every objective in every form as a function (logits, solutions, mask, variable_mask, scores, noise) -> scalar."""

    def plain(objective):
        return lambda logits, solutions, mask, variables, scores, noise: objective(
            logits, solutions, mask, variable_mask=variables
        )

    def drawn(objective):
        return lambda logits, solutions, mask, variables, scores, noise: objective(
            logits, solutions, mask, variable_mask=variables, noise=noise
        )

    def selecting(loss, draws):
        return lambda logits, solutions, mask, variables, scores, noise: loss(
            logits, solutions, mask, scores, variable_mask=variables, noise=noise if draws else None
        )

    options = {"validate": validate, "pair_loss": pair_loss()}
    losses = {name: plain(form(**options)) for name, form in FORMS.items()}
    losses["MinLoss epsilon"] = drawn(MinLoss(epsilon=0.5, **options))
    losses["IExplR sample"] = drawn(IExplR(sample=True, **options))
    losses["SelectR"] = selecting(SelectR(**options), False)
    losses["SelectR sample"] = selecting(SelectR(sample=True, **options), True)
    losses["selector"] = selecting(SelectR(**options).selector_loss, False)
    bonus = SelectR(reinforce=True, entropy_bonus=0.1, epsilon=0.1, **options)
    losses["selector reinforce"] = selecting(bonus.selector_loss, True)
    return losses


def make_inputs(device="cpu", **options):
    case = make_case(0, T=2, dtype=torch.float32, **options)
    batch, _, variables = case.solutions.shape
    generator = torch.Generator().manual_seed(0)
    variable_mask = torch.rand(batch, variables, generator=generator) < 0.7
    scores, noise = torch.randn(case.mask.shape, generator=generator), torch.rand(case.mask.shape, generator=generator)
    tensors = [t.to(device) for t in (case.logits, case.solutions, case.mask, variable_mask, scores, noise)]
    tensors[0].requires_grad_()
    tensors[4].requires_grad_()
    return tensors


def gradients(loss, inputs):
    wanted = [inputs[0], inputs[4]]
    return [g for g in torch.autograd.grad(loss, wanted, allow_unused=True) if g is not None]


# The other forms use the same operations; the GPU test below compiles all of them.
@pytest.mark.parametrize(
    "name", ["CCLoss", "MinLoss", "MinLoss epsilon", "IExplR", "IExplR sample", "SelectR", "selector reinforce"]
)
def test_compiles_to_one_graph(name):
    """With validate=True: compiled functions skip the checks of values."""
    torch._dynamo.reset()
    function = every_loss(validate=True)[name]
    inputs = make_inputs()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    loss, wanted = compiled(*inputs), function(*inputs)
    torch.testing.assert_close(loss, wanted)
    for actual, expected in zip(gradients(loss, inputs), gradients(wanted, inputs), strict=True):
        torch.testing.assert_close(actual, expected)


def test_one_graph_serves_batches_of_all_sizes():
    """After the second shape torch compiles for any B and K; a third and fourth must not compile again."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    objective = MinLoss()
    compiled = torch.compile(objective, fullgraph=True, backend=counter)
    for B, K in ((4, 3), (6, 5), (7, 2), (9, 30)):
        inputs = make_inputs(B=B, K=K)
        loss, wanted = compiled(*inputs[:3]), objective(*inputs[:3])
        torch.testing.assert_close(loss, wanted)
        torch.testing.assert_close(gradients(loss, inputs), gradients(wanted, inputs))
    assert counter.frame_count <= 2


def test_compiles_binary_and_chunks_to_one_graph():
    torch._dynamo.reset()
    inputs = make_inputs(K=5)
    objective = CCLoss(pair_loss=BinaryNLL(solutions_at_once=2))
    compiled = torch.compile(objective, fullgraph=True, backend="aot_eager")
    loss, wanted = compiled(*inputs[:3], variable_mask=inputs[3]), objective(*inputs[:3], variable_mask=inputs[3])
    torch.testing.assert_close(loss, wanted)
    torch.testing.assert_close(gradients(loss, inputs), gradients(wanted, inputs))


@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
def test_nothing_reads_a_value(pair_loss):
    """Fake tensors have no values: reading one fails."""
    inputs = make_inputs()
    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(tensor) for tensor in inputs]
        for name, loss in every_loss(validate=False, pair_loss=pair_loss).items():
            value = loss(*fake)
            assert value.shape == (), name
            value.backward()
        with pytest.raises(Exception, match=r"data-dependent|aten\._local_scalar_dense"):
            every_loss(validate=True, pair_loss=pair_loss)["MinLoss"](*fake)


@needs_cuda
@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
def test_the_gpu_computes_the_same(pair_loss):
    inputs, on_gpu = make_inputs(), make_inputs("cuda")
    for name, loss in every_loss(validate=True, pair_loss=pair_loss).items():
        actual, wanted = loss(*on_gpu), loss(*inputs)
        torch.testing.assert_close(actual.cpu(), wanted, rtol=1e-5, atol=1e-5, msg=name)
        for a, w in zip(gradients(actual, on_gpu), gradients(wanted, inputs), strict=True):
            torch.testing.assert_close(a.cpu(), w, rtol=1e-5, atol=1e-5, msg=name)


@needs_cuda
@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
def test_the_gpu_is_never_waited_for(pair_loss):
    inputs = make_inputs("cuda")
    losses = every_loss(validate=False, pair_loss=pair_loss)
    for loss in losses.values():
        loss(*inputs).backward()
    with warnings.catch_warnings(action="ignore"):
        torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchronizing"):
            inputs[0].sum().item()
        for loss in losses.values():
            loss(*inputs).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs_cuda
@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream does not match:UserWarning")
@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
def test_capture_in_a_cuda_graph(pair_loss):
    """With validate=True: capturing a graph skips the checks of values."""
    for name, loss in every_loss(validate=True, pair_loss=pair_loss).items():
        inputs = make_inputs("cuda")

        def run(loss=loss, inputs=inputs):
            value = loss(*inputs)
            return value, gradients(value, inputs)

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            value, slopes = run()
        with torch.no_grad():
            inputs[0].mul_(-0.5).add_(0.1)
            inputs[4].mul_(-2.0)
            inputs[5].copy_(torch.rand_like(inputs[5]))
        graph.replay()
        wanted, wanted_slopes = run()
        torch.testing.assert_close(value, wanted, msg=name)
        for actual, expected in zip(slopes, wanted_slopes, strict=True):
            torch.testing.assert_close(actual, expected, msg=name)


@needs_cuda
@pytest.mark.filterwarnings("ignore:(?s).*Online softmax is disabled:UserWarning")
def test_compiles_for_the_gpu():
    inputs = make_inputs("cuda")
    for name, loss in every_loss(validate=True).items():
        torch._dynamo.reset()
        value, wanted = torch.compile(loss, fullgraph=True)(*inputs), loss(*inputs)
        torch.testing.assert_close(value, wanted, rtol=1e-5, atol=1e-5, msg=name)
        for a, w in zip(gradients(value, inputs), gradients(wanted, inputs), strict=True):
            torch.testing.assert_close(a, w, rtol=1e-5, atol=1e-5, msg=name)


@needs_cuda
@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
def test_the_gpu_gives_the_same_bits_again(pair_loss):
    """Although several weights are added to one logit."""
    inputs = make_inputs("cuda", B=64, K=40, R=9, V=2, listed=1.0)
    for name, loss in every_loss(validate=False, pair_loss=pair_loss).items():
        first, *others = [gradients(loss(*inputs), inputs) for _ in range(5)]
        for other in others:
            assert all(torch.equal(a, b) for a, b in zip(other, first, strict=True)), name


@needs_cuda
def test_deterministic_algorithms_on_the_gpu():
    """In float64, which has no kernel, with torch's deterministic algorithms."""
    logits, solutions, mask, *_ = make_inputs("cuda", B=64, K=40, R=9, V=2, listed=1.0)
    logits = logits.detach().to(torch.float64).requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        runs = [torch.autograd.grad(CCLoss()(logits, solutions, mask), logits)[0] for _ in range(5)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(run, runs[0]) for run in runs)


@needs_cuda
def test_tensors_on_two_devices():
    logits, solutions, mask, *_ = make_inputs("cuda")
    with pytest.raises(ValueError, match="mask: expected device cuda:0, got device cpu"):
        MinLoss()(logits, solutions, mask.cpu())
    with pytest.raises(ValueError, match="generator: expected device cuda:0, got cpu"):
        IExplR(sample=True)(logits, solutions, mask, generator=torch.Generator())
