# spec/host/dlpack.py: arrays of NumPy and tensors of PyTorch in a state and back; called by
# python_spec.lua with libltrain.so and what to check: "numpy", "torch" or "cuda" (a state's tensors
# on an emulated GPU); by ./dev gpu with "torch_cuda" (PyTorch's on a GPU). Prints what was checked.
import ctypes as c
import gc
import os
import sys
import threading
import weakref

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples/embed"))
import python as ltrain  # noqa: E402

SCRIPT = b"""
lt = require "ltrain"
function add_one(x) x:add_(1) end
function same(x) return x end
function total(x) return x:double():sum():item() end
function shape(x) return table.concat(x.shape, ",") end
function to_gpu_and_fill(x)
  local y = x:to "cuda"
  x:fill_(7)
  return y
end
function ones(dtype, device) return lt.ones(2, 3, {dtype = dtype, device = device}) end
"""
state = ltrain.State(SCRIPT, allow=ltrain.LOAD_LIBRARIES)
DTYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i64": "int64",
          "i32": "int32", "u8": "uint8", "i16": "int16", "u16": "uint16", "i8": "int8",
          "bool": "bool"}


def total(tensor):
    result = c.c_double()
    state.call(b"total", b"T>d", tensor, c.byref(result))
    return result.value


def text(function, tensor):
    result = c.c_char_p()
    state.call(function, b"T>s", tensor, c.byref(result))
    return result.value.decode()


def ones(dtype, device="cpu"):
    out = c.c_void_p()
    state.call(b"ones", b"ss>T", dtype.encode(), device.encode(), c.byref(out))
    return ltrain.Tensor(state, out.value)


def fails(what, function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        assert what in str(error), str(error)
        return
    raise AssertionError(what + ": no error")


def run_gc():
    ltrain.lib.ltrain_dostring(state, b"", b"")  # what was given back goes with a call
    gc.collect()


def check_common(make, from_dlpack, dtypes):
    for name in dtypes:
        array = make(name)
        tensor = state.tensor(array)
        assert total(tensor) == 6, name
        assert text(b"shape", tensor) == "2,3"
        back = from_dlpack(tensor)
        assert back.dtype == array.dtype and tuple(back.shape) == (2, 3), name
        assert address(back) == address(array), name
        theirs = from_dlpack(ones(name))
        assert theirs.dtype == array.dtype and theirs.sum() == 6, name
    # Written on one side, read on the other; strides and offsets.
    array = make("f32")
    part = array[:, 1:]
    state.call(b"add_one", b"T", state.tensor(part))
    assert array.tolist() == [[1, 2, 2], [1, 2, 2]]
    turned = state.tensor(array.T)
    assert text(b"shape", turned) == "3,2" and total(turned) == 10
    array[0, 0] = 11
    assert total(turned) == 20
    # Nothing in it, and a scalar.
    assert total(state.tensor(array[:0])) == 0
    assert total(state.tensor(array[:1, :1].reshape(()))) == 11


def check_lives(make, from_dlpack):
    array = make("f32")
    alive = weakref.ref(array)
    tensor = state.tensor(array)
    del array
    gc.collect()
    assert alive() is not None and total(tensor) == 6
    del tensor
    run_gc()
    state.call(b"total", b"T>d", ones("f32"), c.byref(c.c_double()))
    # An array that outlives its state, given back by another thread.
    other = ltrain.State(SCRIPT)
    lent, mine = make("f32"), c.c_void_p()
    ltrain.lib.ltrain_call(other, b"ones", b"s>T", b"f64", c.byref(mine))
    views = [from_dlpack(ltrain.Tensor(other, mine.value)), from_dlpack(other.tensor(lent))]
    alive = weakref.ref(lent)
    del other, lent
    gc.collect()
    assert views[0].sum() == 6 and views[1].sum() == 6 and alive() is not None
    thread = threading.Thread(target=views.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert alive() is None
    # A capsule that nobody takes.
    tensor = ones("f32")
    for version in (None, (1, 0)):
        capsule = tensor.__dlpack__(max_version=version)
        del capsule
    gc.collect()


def check_numpy():
    global address
    address = lambda a: a.__array_interface__["data"][0]  # noqa: E731
    modern = tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 1)
    dtypes = [d for d in DTYPES if d != "bf16" and (d != "bool" or modern)]
    check_common(lambda name: numpy.ones((2, 3), DTYPES[name]), numpy.from_dlpack, dtypes)
    check_lives(lambda name: numpy.ones((2, 3), DTYPES[name]), numpy.from_dlpack)
    array = numpy.arange(6.0)
    fails("strides [-1] of shape [6]: they must not be negative", state.tensor, array[::-1])
    fails("no dtype for elements of uint32", state.tensor, array.astype("uint32"))
    fails("no dtype for elements of complex128", state.tensor, array.astype("complex128"))
    fails("dims must be 0 to 8, got 9", state.tensor, numpy.zeros((1,) * 9))
    if modern:  # it says what is read-only
        array.flags.writeable = False
        tensor = state.tensor(array)
        try:
            numpy.from_dlpack(ones("f32"), copy=True)
            raise AssertionError("no error")
        except BufferError:
            pass
        fails("lends it read-only", state.call, b"add_one", b"T", tensor)
        assert total(tensor) == 15 and array[0] == 0
    print(f"numpy {numpy.__version__}: {' '.join(dtypes)}")


def check_torch():
    import torch
    global address
    address = lambda t: t.data_ptr()  # noqa: E731
    check_common(lambda name: torch.ones(2, 3, dtype=getattr(torch, DTYPES[name])),
                 torch.from_dlpack, DTYPES)
    check_lives(lambda name: torch.ones(2, 3, dtype=getattr(torch, DTYPES[name])),
                torch.from_dlpack)
    mine = torch.from_dlpack(ones("f32"))
    mine.requires_grad_(True)
    (mine * mine).sum().backward()
    assert mine.grad.tolist() == [[2, 2, 2]] * 2
    print(f"torch {torch.__version__}: {' '.join(DTYPES)}")


def check_cuda():
    assert ones("f32").__dlpack_device__() == (1, 0)
    for name in DTYPES:
        tensor = ones(name, "cuda:1")
        assert tensor.__dlpack_device__() == (2, 1), name
        shared = state.tensor(tensor)  # as another library's
        assert shared.__dlpack_device__() == (2, 1) and total(shared) == 6, name
    tensor = ones("f32", "cuda:1")
    shared = state.tensor(tensor)
    state.call(b"add_one", b"T", tensor)
    assert total(shared) == 12
    other = ltrain.State(SCRIPT, allow=ltrain.LOAD_LIBRARIES)
    kept = state.tensor(other.tensor(tensor))
    del other, tensor, shared
    gc.collect()
    assert total(kept) == 12
    capsule = kept.__dlpack__(max_version=(1, 0), stream=1)  # that nobody takes
    del capsule
    print(f"cuda: {' '.join(DTYPES)}")


# Tensors of PyTorch on a GPU, and its pinned ones: a copy that was issued has the values of then.
def check_torch_cuda():
    import torch
    global address
    address = lambda t: t.data_ptr()  # noqa: E731
    check_common(lambda name: torch.ones(2, 3, dtype=getattr(torch, DTYPES[name]), device="cuda"),
                 torch.from_dlpack, DTYPES)
    check_lives(lambda name: torch.ones(2, 3, dtype=getattr(torch, DTYPES[name]), device="cuda"),
                torch.from_dlpack)
    pinned = torch.ones(64 << 20).pin_memory()
    copies = c.c_void_p()
    state.call(b"to_gpu_and_fill", b"T>T", state.tensor(pinned), c.byref(copies))
    assert total(ltrain.Tensor(state, copies.value)) == 64 << 20
    assert pinned[0] == 7 and pinned[-1] == 7
    busy = torch.randn(4096, 4096, device="cuda")
    for _ in range(20):  # work of PyTorch's stream that ltrain has to wait for
        busy = busy @ busy * 1e-4
    late = busy * 0 + 1
    assert total(state.tensor(late)) == 4096 * 4096
    print(f"torch_cuda {torch.__version__}: {' '.join(DTYPES)}")


{"numpy": check_numpy, "torch": check_torch, "cuda": check_cuda,
 "torch_cuda": check_torch_cuda}[sys.argv[2]]()
