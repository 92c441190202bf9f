"""What a captured CUDA graph cannot contain, found without a GPU: waiting for the device, and shapes that change."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

aten = torch.ops.aten
WAITING = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
INDEXING = (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_)


class NoSynchronisation(TorchDispatchMode):
    """Refuse operators that make the host wait for a device: reading a number, or a shape that depends on values."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function.overloadpacket in INDEXING:  # the shape depends on values if an index is a mask
            assert all(index is None or index.dtype != torch.bool for index in arguments[1]), function
        else:
            assert not WAITING & set(function.tags), function
        return function(*arguments, **(keywords or {}))


class Capturing(NoSynchronisation):
    """Refuse also tensors made of numbers of the host, and note every operator with its shapes, types and numbers.

    Two updates with the same notes could be the same graph: nothing in it depends on the values of a batch.
    """

    def __init__(self):
        super().__init__()
        self.noted = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        assert function is not aten.lift_fresh.default, "torch.tensor: a copy from host to device"

        def shaped(value):
            if isinstance(value, torch.Tensor):
                return tuple(value.shape), value.dtype
            return value if isinstance(value, (int, float, str, torch.dtype)) else type(value)

        self.noted.append((str(function), tree_map(shaped, arguments), tree_map(shaped, keywords or {})))
        return super().__torch_dispatch__(function, types, arguments, keywords)
