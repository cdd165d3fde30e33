-- spec/onnx/reader.lua: what an ONNX file holds, read apart from the library's writer.

local function varint(s, at)
  local n, shift = 0, 0
  while true do
    local byte <const> = s:byte(at)
    n, shift, at = n | (byte & 0x7f) << shift, shift + 7, at + 1
    if byte < 0x80 then return n, at end
  end
end

-- {[field] = {value, ...}}: numbers, and text for all that has a length.
local function message(s)
  local fields, at = {}, 1
  while at <= #s do
    local key, value
    key, at = varint(s, at)
    if key & 7 == 0 then
      value, at = varint(s, at)
    elseif key & 7 == 2 then
      local n
      n, at = varint(s, at)
      assert(at + n - 1 <= #s, "the file ends within a field")
      value, at = s:sub(at, at + n - 1), at + n
    else
      assert(key & 7 == 5, "an unknown wire type")
      value, at = string.unpack("<f", s, at)
    end
    fields[key >> 3] = fields[key >> 3] or {}
    table.insert(fields[key >> 3], value)
  end
  return fields
end

local function attribute(fields)
  local kind <const> = fields[20][1]
  if kind == 1 then return fields[2][1] end
  if kind == 2 then return fields[3][1] end
  if kind == 3 then return fields[4][1] end
  return fields[8] or {}
end

local function node(s)
  local f <const>, attributes = message(s), {}
  for _, text in ipairs(f[5] or {}) do
    local a <const> = message(text)
    attributes[a[1][1]] = attribute(a)
  end
  return { op = f[4][1], inputs = f[1] or {}, outputs = f[2], attributes = attributes }
end

local function value(s)
  local f <const> = message(s)
  local kind <const>, shape = message(message(f[2][1])[1][1]), {}
  for _, dim in ipairs(message(kind[2][1])[1] or {}) do
    local d <const> = message(dim)
    shape[#shape + 1] = d[2] and d[2][1] or d[1][1]
  end
  return { name = f[1][1], dtype = kind[1][1], shape = shape }
end

--- {opset, nodes, ops (their names), inputs, outputs, initializers = {[name] = {dtype, shape,
--- bytes}}} of the file at `path`.
return function(path)
  local file <close> = assert(io.open(path, "rb"))
  local model <const> = message(file:read "a")
  local graph <const>, read = message(model[7][1]), { nodes = {}, ops = {}, inputs = {},
                                                      outputs = {}, initializers = {} }
  read.opset = message(model[8][1])[2][1]
  for k, text in ipairs(graph[1] or {}) do
    read.nodes[k] = node(text)
    read.ops[k] = read.nodes[k].op
  end
  for k, text in ipairs(graph[11] or {}) do read.inputs[k] = value(text) end
  for k, text in ipairs(graph[12] or {}) do read.outputs[k] = value(text) end
  for _, text in ipairs(graph[5] or {}) do
    local f <const> = message(text)
    read.initializers[f[8][1]] = { dtype = f[2][1], shape = f[1] or {}, bytes = f[9][1] }
  end
  return read
end
