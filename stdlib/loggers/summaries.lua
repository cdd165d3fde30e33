--- stdlib/loggers/summaries.lua: the values of TensorBoard's event files, as messages `Summary` (of
--- one `Value`) of TensorFlow's summary.proto.
--
-- Scalars, images and histograms have fields of their own, as PyTorch's SummaryWriter writes them
-- and tools look for them (`EventAccumulator.Tags()["images"]`); all else is a tensor and the name
-- of the plugin that shows it. The numbers are those of the fields in summary.proto, tensor.proto
-- and the plugin's api.proto.
local c = require "ltrain.c"
local png = require "ltrain.loggers.png"
local protobuf = require "ltrain.core.protobuf"
local tree = require "ltrain.core.tree"

local bytes <const>, double <const>, integer <const> = protobuf.bytes, protobuf.double,
  protobuf.integer

-- DataType of tensor.proto, DataClass of summary.proto.
local FLOAT <const>, STRING <const> = 1, 7
local TENSOR <const> = 2
local SUCCESS <const>, FAILURE <const> = 1, 2 -- Status of the plugin's api.proto

local summaries = {}

--- A number.
function summaries.scalar(name, value)
  return bytes(1, bytes(1, name) .. protobuf.float(2, value))
end

-- TensorProto: dtype = 1, tensor_shape = 2 { dim = 2 { size = 1 } }, then its elements.
local function tensor(dtype, shape, elements)
  local dims = {}
  for i, size in ipairs(shape) do dims[i] = bytes(2, integer(1, size)) end
  return integer(1, dtype) .. bytes(2, table.concat(dims)) .. elements
end

local function strings(list)
  local parts = {}
  for i, text in ipairs(list) do parts[i] = bytes(8, text) end
  return tensor(STRING, { #list }, table.concat(parts))
end

-- Value: tag = 1, tensor = 8, metadata = 9 { plugin_data = 1 { plugin_name = 1, content = 2 },
-- data_class = 4 }.
local function value(name, plugin, content, class, of)
  local metadata = bytes(1, bytes(1, plugin) .. bytes(2, content))
  if class then metadata = metadata .. integer(4, class) end
  return bytes(1, bytes(1, name) .. bytes(8, of) .. bytes(9, metadata))
end

--- u8 tensors [C, H, W]: one under the name, several under name/0, name/1, ... Image: height = 1,
--- width = 2, colorspace = 3, which is the number of channels, encoded_image_string = 4.
function summaries.images(name, images)
  local list = {}
  for i, image in ipairs(images) do
    local channels, height, width = table.unpack(image.shape)
    local tag = #images == 1 and name or ("%s/%d"):format(name, i - 1)
    list[i] = bytes(1, bytes(1, tag) .. bytes(4, integer(1, height) .. integer(2, width)
      .. integer(3, channels) .. bytes(4, png(image))))
  end
  return table.concat(list)
end

--- A text, shown as Markdown.
function summaries.text(name, text)
  return value(name, "text", "", TENSOR, strings { text })
end

--- HistogramProto: min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6 (right
--- edges), bucket = 7: an empty bucket comes first, which ends at the first edge.
function summaries.histogram(name, h)
  local counts = table.move(h.counts, 1, #h.counts, 2, { 0 })
  return bytes(1, bytes(1, name) .. bytes(5, double(1, h.min) .. double(2, h.max)
    .. double(3, h.num) .. double(4, h.sum) .. double(5, h.sum_squares)
    .. protobuf.doubles(6, h.edges) .. protobuf.doubles(7, counts)))
end

-- google.protobuf.Value: number_value = 2, string_value = 3, bool_value = 4.
local function plain_value(of)
  if type(of) == "number" then return double(2, of) end
  if type(of) == "boolean" then return integer(4, of) end
  return bytes(3, type(of) == "string" and of or c.io.json_encode(of, { plain = true }))
end

-- Entries of a map<string, Value>; names of tables in tables are joined by /.
local function add_entries(parts, params, before)
  for name, of in tree.pairs(params) do
    name = before .. tostring(name)
    if type(of) == "table" and #of == 0 and next(of) ~= nil then
      add_entries(parts, of, name .. "/")
    else
      parts[#parts + 1] = bytes(1, bytes(1, name) .. bytes(2, plain_value(of)))
    end
  end
  return parts
end

-- HParamsPluginData: version = 1, which is 0, then what it holds.
local function session(name, number, message)
  return value(name, "hparams", integer(1, 0) .. bytes(number, message), nil,
    tensor(FLOAT, {}, protobuf.float(5, 0)))
end

--- A run begins: hparams = 1, group_name = 4, start_time_secs = 5. The metrics of the tab are the
--- scalars of the run: without a message `Experiment` TensorBoard takes all of them.
function summaries.session_start(params, seconds, group)
  return session("_hparams_/session_start_info", 3, table.concat(add_entries({}, params, ""))
    .. bytes(4, group) .. double(5, seconds))
end

--- A run ends: status = 1, end_time_secs = 2.
function summaries.session_end(is_success, seconds)
  return session("_hparams_/session_end_info", 4,
    integer(1, is_success and SUCCESS or FAILURE) .. double(2, seconds))
end

return summaries
