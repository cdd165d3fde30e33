-- stdlib/onnx/proto.lua: the messages of an ONNX file in protobuf's wire format.
--
-- Field numbers are those of onnx.proto (github.com/onnx/onnx, the messages' names stand here).
local protobuf = require "ltrain.core.protobuf"

local proto = {}

-- ONNX's numbers of dtypes (TensorProto.DataType).
proto.DTYPES = { f32 = 1, u8 = 2, i8 = 3, i16 = 5, i32 = 6, i64 = 7, bool = 9, f16 = 10, f64 = 11,
                 bf16 = 16 }

local int <const>, text <const>, float <const> = protobuf.integer, protobuf.bytes, protobuf.float

local function each(field, write, list)
  local parts = {}
  for k, value in ipairs(list) do parts[k] = write(field, value) end
  return table.concat(parts)
end

--- TensorProto: the elements of a tensor on the CPU.
function proto.tensor(name, x)
  return each(1, int, x.shape) .. int(2, proto.DTYPES[x.dtype]) .. text(8, name) ..
    text(9, x:contiguous():tobytes())
end

-- AttributeProto: the kind follows from the value: a whole number, another one, text, a list of
-- whole numbers or of texts, or {tensor = x}.
local function attribute(name, value)
  local head <const> = text(1, name)
  if math.type(value) == "integer" then return head .. int(3, value) .. int(20, 2) end
  if type(value) == "number" then return head .. float(2, value) .. int(20, 1) end
  if type(value) == "string" then return head .. text(4, value) .. int(20, 3) end
  if value.tensor then return head .. text(5, proto.tensor("", value.tensor)) .. int(20, 4) end
  if type(value[1]) == "string" then return head .. each(9, text, value) .. int(20, 8) end
  return head .. each(8, int, value) .. int(20, 7)
end

--- NodeProto. `attributes`: values by name.
function proto.node(op, inputs, outputs, attributes)
  local names = {}
  for name in next, attributes or {} do names[#names + 1] = name end
  table.sort(names)
  local parts = { each(1, text, inputs), each(2, text, outputs), text(4, op) }
  for _, name in ipairs(names) do
    parts[#parts + 1] = text(5, attribute(name, attributes[name]))
  end
  return table.concat(parts)
end

--- ValueInfoProto: a dim is a number or the name of one.
function proto.value(name, dtype, shape)
  local dims = {}
  for k, size in ipairs(shape) do
    dims[k] = text(1, type(size) == "string" and text(2, size) or int(1, size))
  end
  local kind <const> = int(1, proto.DTYPES[dtype]) .. text(2, table.concat(dims))
  return text(1, name) .. text(2, text(1, kind))
end

--- ModelProto of lists of encoded nodes, initializers, inputs and outputs.
function proto.model(parts, opset, producer_version)
  local graph <const> = each(1, text, parts.nodes) .. text(2, parts.name) ..
    each(5, text, parts.initializers) .. each(11, text, parts.inputs) ..
    each(12, text, parts.outputs)
  return int(1, parts.ir_version) .. text(2, "ltrain") .. text(3, producer_version) ..
    text(7, graph) .. text(8, text(1, "") .. int(2, opset))
end

return proto
