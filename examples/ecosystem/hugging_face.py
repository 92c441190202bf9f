"""A Hugging Face encoder-decoder in its `Trainer`, with several right answers. The model is made from a config.

The Trainer's model returns a loss; ours scores all listed answers and trains on the nearest one (`train_on_chosen`).

    python examples/ecosystem/hugging_face.py
"""

import tempfile

import torch
from task import ANSWERS, QUERIES, right
from transformers import T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments

from oneofmany.data import collate
from oneofmany.objectives import MinLoss, SequenceNLL, train_on_chosen

START = 10


class OneOfMany(Trainer):
    """The Trainer with the loss of an objective."""

    objective, nll = MinLoss(), SequenceNLL()

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        queries, answers, mask = inputs["query"], inputs["solutions"], inputs["mask"]

        def losses_of(rows, chosen):
            return self.nll(model(input_ids=queries[rows], labels=chosen).logits, chosen)

        return train_on_chosen(self.objective, losses_of, answers, mask).loss


def main() -> None:
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=11,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=1,
        num_heads=2,
        dropout_rate=0.0,
        pad_token_id=START,
        decoder_start_token_id=START,
        eos_token_id=None,
    )
    items = [{"query": [q], "solutions": ANSWERS[q]} for q in QUERIES.tolist()]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=200,
            per_device_train_batch_size=10,
            learning_rate=1e-2,
            lr_scheduler_type="constant",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            use_cpu=True,
            seed=0,
        )
        model = T5ForConditionalGeneration(config)
        OneOfMany(model, arguments, train_dataset=items, data_collator=collate).train()
    model.eval()
    given = torch.full((10, 1), START)
    for _ in range(2):  # greedy decoding
        logits = model(input_ids=QUERIES[:, None], decoder_input_ids=given).logits
        given = torch.cat([given, logits[:, -1:].argmax(-1)], 1)
    print(f"{right(given[:, 1:])} of 10 right")


if __name__ == "__main__":
    main()
