"""Compile and launch CUDA kernels with what comes with PyTorch and the driver: no toolkit is needed."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

_MOST_SHARED_MEMORY = 8  # the driver's number of a function's attribute


def find_compiler() -> ctypes.CDLL | None:
    """Return NVRTC, the compiler that comes with PyTorch; None if there is none."""
    from torch.cuda import _utils

    try:
        return _utils._get_gpu_rtc_library() if torch.version.hip is None else None
    except (AttributeError, OSError):  # an older PyTorch, or one that was built without it
        return None


def compile_kernels(source: str, defined: dict[str, int], device: torch.device) -> bytes:
    """Return machine code for a GPU.

    Args:
        source: CUDA C++.
        defined: names that the source uses as constants.
        device: the GPU.
    """
    compiler = find_compiler()
    assert compiler is not None
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def text(name: str) -> bytes:
        getattr(compiler, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        getattr(compiler, f"nvrtcGet{name}")(program, found)
        return found.raw

    major, minor = torch.cuda.get_device_capability(device)
    options = [f"--gpu-architecture=sm_{major}{minor}", "-std=c++17", *(f"-D{k}={v}" for k, v in defined.items())]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    compiler.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    try:
        if compiler.nvrtcCompileProgram(program, len(options), given):
            raise RuntimeError(f"the CUDA kernels do not compile: {text('ProgramLog').decode()}")
        return text("CUBIN")
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


class Module:
    """The kernels of a program on a GPU.

    Args:
        code: from ``compile_kernels``.
        device: the GPU.
    """

    def __init__(self, code: bytes, device: torch.device) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._module, self._functions, self._memory = ctypes.c_void_p(), {}, {}
        with torch.cuda.device(device):
            torch.cuda.current_stream()  # begins CUDA
            self._checked(self._driver.cuModuleLoadData(ctypes.byref(self._module), code))

    def launch(self, name: str, blocks: int, threads: int, memory: int, arguments: Sequence[Tensor | int]) -> None:
        """Run a kernel on the current stream.

        Args:
            name: of an ``extern "C"`` function.
            blocks: their number.
            threads: of a block.
            memory: shared memory of a block in bytes.
            arguments: tensors are pointers, whole numbers are int.
        """
        if name not in self._functions:
            found = ctypes.c_void_p()
            self._checked(self._driver.cuModuleGetFunction(ctypes.byref(found), self._module, name.encode()))
            self._functions[name] = found
        if memory > self._memory.get(name, 48 << 10):  # more than a function has without asking
            self._checked(self._driver.cuFuncSetAttribute(self._functions[name], _MOST_SHARED_MEMORY, memory))
            self._memory[name] = memory
        numbers = [a.data_ptr() if isinstance(a, Tensor) else a for a in arguments]
        values = (ctypes.c_longlong * len(numbers))(*numbers)  # the lower half of an int is its value
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * len(numbers))(*(first + 8 * i for i in range(len(numbers))))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        sizes = (blocks, 1, 1, threads, 1, 1, memory)
        self._checked(self._driver.cuLaunchKernel(self._functions[name], *sizes, stream, places, None))

    def _checked(self, result: int) -> None:
        if result:
            message = ctypes.c_char_p()
            self._driver.cuGetErrorString(result, ctypes.byref(message))
            raise RuntimeError(f"CUDA: {(message.value or b'unknown error').decode()}")
