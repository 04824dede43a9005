"""Writes a container again with the safetensors library (0.8.0): `make.py IN OUT`. The tensors are those of IN, the bytes are the library's."""

import ctypes
import sys

from safetensors import TensorSpec, deserialize, serialize

NAMES = {"I64": "int64", "F64": "float64", "I32": "int32", "U8": "uint8"}

source, target = sys.argv[1:]
with open(source, "rb") as file:
    tensors = deserialize(file.read())
alive = []
specs = {}
for name, tensor in reversed(tensors):
    data = bytes(tensor["data"])
    buffer = ctypes.create_string_buffer(data, max(1, len(data)))
    alive.append(buffer)
    specs[name] = TensorSpec(
        dtype=NAMES[tensor["dtype"]],
        shape=tensor["shape"],
        data_ptr=ctypes.addressof(buffer),
        data_len=len(data),
    )
with open(target, "wb") as file:
    file.write(serialize(specs, None))
