--- stdlib/callbacks/PredictionWriter.lua: writes what predict_step returns to a file: CSV, JSON
-- lines, or safetensors.
--
-- predict_step returns for its batch a tensor [N, ...] or a list of N values, named "prediction" in
-- the file, or a table of these by name. Each sample is a row; in CSV a tensor [N, K] has the
-- columns name_0 ... name_K-1; safetensors files contain one tensor [N, ...] per name.
--
-- At the end rank 0 writes all predictions, in the order of the data, with any number of ranks.
-- With write_interval = "batch" each batch is appended at once, so that predictions are not kept in
-- memory: on several ranks each writes its own file ("-rank1" before the extension), and rows have
-- the number of their batch. N samples.
local BasePredictionWriter = require "ltrain.callbacks.BasePredictionWriter"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local csv_field = require "ltrain.core.csv_field"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local PredictionWriter = BasePredictionWriter:extend("PredictionWriter")

local FORMATS <const> = { csv = "csv", json = "jsonl", jsonl = "jsonl",
  safetensors = "safetensors" }

local OPTIONS <const> = {
  path = { type = "string", required = true,
    doc = "the file; with several loaders -0, -1, ... is inserted before the extension" },
  format = { type = "string", choices = { "csv", "jsonl", "safetensors" },
    doc = "by default inferred from the extension of the path" },
  write_interval = { type = "string", default = "epoch", choices = { "batch", "epoch" },
    doc = "append each batch, or write all at the end" },
}

--- PredictionWriter{path = "predictions.csv"}
function PredictionWriter:init(options)
  local o = config.check(options, OPTIONS, "callbacks.PredictionWriter")
  for name, value in next, o do self[name] = value end
  BasePredictionWriter.init(self, { write_interval = o.write_interval })
  self.format = o.format or FORMATS[o.path:match "%.(%w+)$"]
  if not self.format then
    errors.blame("callbacks.PredictionWriter: the path must end in .csv, .jsonl or .safetensors, "
      .. "or format must be given: got %s", errors.show(o.path))
  elseif self.format == "safetensors" and o.write_interval == "batch" then
    errors.blame("callbacks.PredictionWriter: safetensors cannot be appended to: "
      .. "write_interval = 'batch' is for csv and jsonl")
  end
end

-- What a batch gave, as named columns: tensors [N, ...] or lists of N values, and N.
local function columns_of(outputs)
  if c.is_tensor(outputs) or type(outputs) == "table" and outputs[1] ~= nil then
    outputs = { prediction = outputs }
  end
  if type(outputs) ~= "table" or next(outputs) == nil then
    errors.blame("PredictionWriter: predict_step must return a tensor, a list, or a table of "
      .. "them: got %s", errors.show(outputs))
  end
  local count, first
  for name, column in tree.pairs(outputs) do
    local is_tensor = c.is_tensor(column)
    if is_tensor and column.ndim == 0 or not is_tensor
      and (type(column) ~= "table" or c.is_tensor(column[1])) then
      errors.blame("PredictionWriter: '%s' must be a tensor [N, ...] or a list of numbers or "
        .. "texts: got %s", name, errors.show(column))
    end
    local n = is_tensor and column.shape[1] or #column
    if count and n ~= count then
      errors.blame("PredictionWriter: '%s' has %d samples, '%s' has %d", first, count, name, n)
    end
    count, first = count or n, first or name
  end
  return outputs, count
end

-- CSV.

local function field(value)
  return type(value) == "string" and csv_field.text(value) or tostring(value)
end

-- Columns of numbers and texts: those of tensors [N, K] are K.
local function flat_columns(columns)
  local list = {}
  for name, column in tree.pairs(columns) do
    if c.is_tensor(column) and column.ndim > 1 then
      local rows = column:reshape { column.shape[1], -1 }
      for k = 1, rows.shape[2] do
        list[#list + 1] = { name = ("%s_%d"):format(name, k - 1), rows:select(2, k):tolist() }
      end
    else
      list[#list + 1] = { name = name, c.is_tensor(column) and column:tolist() or column }
    end
  end
  return list
end

local function csv_lines(lines, columns, count)
  local list, fields = flat_columns(columns), {}
  if #lines == 0 then
    for k, column in ipairs(list) do fields[k] = field(column.name) end
    lines[1] = table.concat(fields, ",")
  end
  for i = 1, count do
    for k, column in ipairs(list) do fields[k] = field(column[1][i]) end
    lines[#lines + 1] = table.concat(fields, ",", 1, #list)
  end
end

-- JSON lines.

local function json_lines(lines, columns, count)
  local values = {}
  for name, column in pairs(columns) do
    values[name] = c.is_tensor(column) and column:tolist() or column
  end
  for i = 1, count do
    local row = {}
    for name, column in pairs(values) do row[name] = column[i] end
    lines[#lines + 1] = c.io.json_encode(row, { plain = true })
  end
end

local ADD <const> = { csv = csv_lines, jsonl = json_lines }

-- Files.

local function must(ok, message)
  if not ok then errors.blame("PredictionWriter: %s", message) end
end

-- "folder/name-1.csv" of "folder/name.csv".
local function with(path, suffix)
  local head, ending = path:match "^(.*)(%.[^./]*)$"
  return (head or path) .. suffix .. (ending or "")
end

local function make_folder_of(path)
  local folder = path:match "^(.*)/[^/]*$"
  if folder and folder ~= "" then must(c.io.make_folder(folder)) end
end

local function path_of(self, trainer, loader)
  local several = #trainer.num_predict_batches > 1
  return several and with(self.path, ("-%d"):format(loader - 1)) or self.path
end

local function write_tensors(path, batches)
  local parts, all = {}, {}
  for _, outputs in ipairs(batches) do
    for name, column in pairs((columns_of(outputs))) do
      if not c.is_tensor(column) then column = c.tensor(column) end
      parts[name] = parts[name] or {}
      table.insert(parts[name], column)
    end
  end
  for name, list in pairs(parts) do all[name] = c.cat(list, 1):contiguous() end
  must(c.io.save_safetensors(path, all, {}))
end

local function write_all(self, path, batches)
  make_folder_of(path)
  if self.format == "safetensors" then return write_tensors(path, batches) end
  local lines = {}
  for _, outputs in ipairs(batches) do
    local columns, count = columns_of(outputs)
    ADD[self.format](lines, columns, count)
  end
  lines[#lines + 1] = ""
  must(c.io.write_file(path, table.concat(lines, "\n")))
end

function PredictionWriter:on_predict_start() self._begun = {} end

--- Appends a batch to its file.
function PredictionWriter:write_on_batch_end(trainer, _, outputs, _, _, batch_idx, dataloader_idx)
  local path, many = path_of(self, trainer, dataloader_idx), trainer.world_size > 1
  if many then path = with(path, ("-rank%d"):format(trainer.global_rank)) end
  local columns, count = columns_of(outputs)
  if many then
    local numbered = { batch = c.full({ count }, batch_idx, { dtype = "i64" }) }
    for name, column in pairs(columns) do numbered[name] = column end
    columns = numbered
  end
  local begun = self._begun[path]
  local lines = { begun and "" or nil } -- the names of columns come once
  ADD[self.format](lines, columns, count)
  if begun then table.remove(lines, 1) end
  lines[#lines + 1] = ""
  if not begun then make_folder_of(path) end
  local write = begun and c.io.append_file or c.io.write_file
  must(write(path, table.concat(lines, "\n")))
  self._begun[path] = true
end

--- Writes the files.
function PredictionWriter:write_on_epoch_end(trainer, _, results, _)
  if not trainer.is_global_zero then return end
  local lists = #trainer.num_predict_batches > 1 and results or { results }
  for i, batches in ipairs(lists) do write_all(self, path_of(self, trainer, i), batches) end
end

return PredictionWriter
