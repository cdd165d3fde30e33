# examples/embed/python.py: ltrain inside Python, through ctypes, with NumPy's arrays in and out.
#
#   python3 python.py [libltrain.so]
#
# Trains a network on points of two spirals that NumPy makes, and prints the loss and how many it
# gets right. Arrays and tensors share their memory by DLPack, without a copy either way:
# torch.from_dlpack(tensor) works as numpy.from_dlpack(tensor) does.
import ctypes as c
import sys

import numpy

SCRIPT = b"""
local lt = require "ltrain"
local nn = lt.nn
lt.seed(1)
local net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
  nn.Linear(64, 2))
local adam = lt.optim.Adam(net:parameters(), {lr = 0.01})
function train(x, y)
  local loss = lt.cross_entropy(net(x), y)
  adam:zero_grad()
  loss:backward()
  adam:step()
  return loss:item()
end
function predict(x)
  local _ <close> = lt.no_grad()
  return net(x):softmax(-1)
end
"""

LOAD_LIBRARIES = 8  # as in ltrain.h
P, S, T = c.c_void_p, c.c_char_p, c.py_object
lib = c.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libltrain.so.0")
py = c.pythonapi
for library, prefix, functions in (
        (lib, "ltrain_", {"open": (P, P), "close": (None, P), "errmsg": (S, P),
                          "dostring": (c.c_bool, P, S, S), "release": (None, P, P),
                          "to_dlpack": (P, P, P, c.c_int), "from_dlpack": (P, P, P),
                          "to_dlpack_unversioned": (P, P, P, c.c_int),
                          "from_dlpack_unversioned": (P, P, P)}),
        (py, "PyCapsule_", {"New": (T, P, S, P), "GetName": (S, P), "GetPointer": (P, P, S),
                            "SetName": (c.c_int, P, S)})):
    for name, (result, *arguments) in functions.items():
        function = getattr(library, prefix + name)
        function.restype, function.argtypes = result, arguments
lib.ltrain_call.restype = c.c_bool  # its arguments vary: each is passed as one of ctypes


class Config(c.Structure):  # ltrain_config
    _fields_ = [("size", c.c_size_t), ("alloc", P), ("memory_cap", c.c_size_t),
                ("max_instructions", c.c_int64), ("threads", c.c_int), ("allow", c.c_uint),
                ("log", P), ("print", P), ("progress", P), ("ud", P)]


class Device(c.Structure):  # lt_device
    _fields_ = [("kind", c.c_int16), ("index", c.c_int16)]


lib.lt_tensor_device.restype, lib.lt_tensor_device.argtypes = Device, (P,)
# Names of capsules, of DLPack 1 and of what came before; what they become when somebody owns them.
NEW, OLD = b"dltensor_versioned", b"dltensor"
USED = {name: c.create_string_buffer(b"used_" + name) for name in (NEW, OLD)}


@c.PYFUNCTYPE(None, P)
def drop(capsule):
    """Deletes what was in a capsule that nobody took."""
    name = py.PyCapsule_GetName(capsule)
    if name in (NEW, OLD):
        tensor = py.PyCapsule_GetPointer(capsule, name)
        c.CFUNCTYPE(None, P).from_address(tensor + (16 if name == NEW else 56))(tensor)


class Tensor:
    """A tensor of a state; numpy.from_dlpack(tensor) is an array in its memory."""

    def __init__(self, state, pointer):
        self.state, self._as_parameter_ = state, P(pointer)  # what ctypes passes
        state.check(pointer)

    def __del__(self):
        lib.ltrain_release(self.state, self)

    def __dlpack_device__(self):
        device = lib.lt_tensor_device(self)
        return (2, device.index) if device.kind else (1, 0)  # CUDA, the CPU

    def __dlpack__(self, max_version=None, copy=None, **_):
        if copy:
            raise BufferError("memory is shared here: copy the array")
        new = max_version is not None and max_version[0] >= 1
        export = lib.ltrain_to_dlpack if new else lib.ltrain_to_dlpack_unversioned
        tensor = self.state.check(export(self.state, self, 1))
        return py.PyCapsule_New(tensor, NEW if new else OLD, drop)


class State:
    """A Lua interpreter with ltrain, for one thread at a time; GPUs need allow=LOAD_LIBRARIES."""

    def __init__(self, script, allow=0):
        config = Config(size=c.sizeof(Config), allow=allow)
        self._as_parameter_ = P(lib.ltrain_open(c.byref(config)))
        self.check(lib.ltrain_dostring(self, script, b"script"))

    def __del__(self):
        lib.ltrain_close(self)

    def check(self, result):
        if not result:
            raise RuntimeError(lib.ltrain_errmsg(self).decode())
        return result

    def call(self, name, signature, *values):
        self.check(lib.ltrain_call(self, name, signature, *values))

    def tensor(self, array):
        """A tensor in the memory of an array, which lives as long as the tensor."""
        try:
            capsule = array.__dlpack__(max_version=(1, 0))
        except TypeError:  # NumPy before 2.1
            capsule = array.__dlpack__()
        name = py.PyCapsule_GetName(id(capsule))
        take = lib.ltrain_from_dlpack if name == NEW else lib.ltrain_from_dlpack_unversioned
        result = Tensor(self, take(self, py.PyCapsule_GetPointer(id(capsule), name)))
        py.PyCapsule_SetName(id(capsule), USED[name])
        return result


def main():
    state = State(SCRIPT)
    t = numpy.linspace(0.3, 3, 200, dtype=numpy.float32)
    arm = numpy.stack([t * numpy.sin(3 * t), t * numpy.cos(3 * t)], axis=1)
    points, labels = numpy.concatenate([arm, -arm]), numpy.repeat([0, 1], 200)
    x, y = state.tensor(points), state.tensor(labels)
    loss, out = c.c_double(), P()
    for _ in range(200):
        state.call(b"train", b"TT>d", x, y, c.byref(loss))
    state.call(b"predict", b"T>T", x, c.byref(out))
    likely = numpy.from_dlpack(Tensor(state, out.value))
    right = (likely.argmax(axis=1) == labels).mean()
    print(f"loss {loss.value:.4f}, {100 * right:.1f} % of {len(points)} points right")


if __name__ == "__main__":
    main()
