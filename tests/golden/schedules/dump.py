# Writes the files beside it with PyTorch's own code (2.15.0 made them; no GPU, no process group).
"""Usage: dump.py   (needs the torch of PyPI, in any virtual environment)"""

import csv
from pathlib import Path

import torch
from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.stage import _PipelineStageBase

HERE = Path(__file__).resolve().parent
SHAPES = [  # name, ranks, micro-batches, chunks
    ("GPipe", 4, 2, 1),
    ("Interleaved1F1B", 2, 4, 2),
    ("Interleaved1F1B", 4, 8, 3),
    ("LoopedBFS", 3, 4, 2),
    ("InterleavedZeroBubble", 4, 6, 1),
    ("InterleavedZeroBubble", 4, 10, 2),
    ("ZBVZeroBubble", 4, 3, 2),
    ("ZBVZeroBubble", 4, 9, 2),
    ("DualPipeV", 4, 10, 2),
]


class Stage(_PipelineStageBase):
    """A stage with the few members that a schedule looks at before it runs."""

    def __init__(self, index, ranks, stages):
        self.stage_index, self.group_rank = index, index % ranks
        self.group_size, self.num_stages = ranks, stages
        self.submod, self.has_backward, self.device = torch.nn.Linear(1, 1), False, "cpu"
        self.stage_index_to_group_rank = {i: i % ranks for i in range(stages)}

    def _unused(self, *_):
        raise NotImplementedError

    _create_grad_recv_info = _prepare_forward_infra = _unused
    _prepare_backward_infra = _create_act_recv_info = _unused


def write(name, rows):
    with (HERE / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main():
    for name, ranks, microbatches, chunks in SHAPES:
        stages = [Stage(i * ranks, ranks, chunks * ranks) for i in range(chunks)]
        kind = schedules.get_schedule_class(name)
        file = f"{name}_p{ranks}_m{microbatches}_v{chunks}"
        if issubclass(kind, schedules.PipelineScheduleSingle):
            order = kind(stages[0], microbatches)._get_pipeline_order()
        else:
            made = kind(stages, microbatches)
            order = made.pipeline_order
            write(file + "_comms.csv", made.pipeline_order_with_comms.values())
        write(file + ".csv", order.values())


main()
