"""SelectR in Lightning: two networks and two optimisers, with manual optimisation.

python examples/ecosystem/lightning_selectr.py
"""

import warnings

import lightning
import torch
from task import ANSWERS, QUERIES, network, right
from torch import nn
from torch.utils.data import DataLoader

from oneofmany.data import collate
from oneofmany.objectives import LaggedCopy, SelectR


class Selector(nn.Module):
    """Scores [B,K] from the lagged copy's logits [B,R,V] and the listed answers [B,K,R]."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, logits, answers):
        belief = logits.softmax(-1)[:, None].expand(-1, answers.shape[1], -1, -1)
        own = belief.gather(-1, answers[..., None])[..., 0]
        return self.layers(torch.cat([own, answers / 9], -1))[..., 0]


class OneOfMany(lightning.LightningModule):
    """The prediction network, the selector and both losses."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.network, self.selector, self.objective = network(), Selector(), SelectR()
        self.lagged = LaggedCopy(self.network)

    def configure_optimizers(self):
        return [torch.optim.Adam(part.parameters(), lr=0.01) for part in (self.network, self.selector)]

    def training_step(self, batch, _):
        queries, answers, mask = batch["query"][:, 0], batch["solutions"], batch["mask"]
        logits = self.network(queries)
        scores = self.selector(self.lagged(queries), answers)
        # Both losses come before either network is updated.
        losses = (
            self.objective(logits, answers, mask, scores),
            self.objective.selector_loss(logits, answers, mask, scores),
        )
        optimizers = self.optimizers()
        for optimizer in optimizers:
            optimizer.zero_grad()
        for loss in losses:
            self.manual_backward(loss)
        for optimizer in optimizers:
            optimizer.step()
        self.lagged.update()


def main() -> None:
    warnings.filterwarnings("ignore")  # about workers and logging, which this small example does not need
    torch.manual_seed(0)
    items = [{"query": [q], "solutions": ANSWERS[q]} for q in QUERIES.tolist()]
    model = OneOfMany()
    trainer = lightning.Trainer(
        max_epochs=300,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, DataLoader(items, batch_size=10, collate_fn=collate))
    print(f"{right(model.network(QUERIES).argmax(-1))} of 10 right")


if __name__ == "__main__":
    main()
