--- stdlib/loggers/CSVLogger.lua: writes metrics to <save_dir>/<name>/version_N/metrics.csv.
--
-- The format is RFC 4180. A column that appears later is added on the right, and earlier rows get
-- an empty field. Images, texts and histograms are written beside it, to media/.
local FileLogger = require "ltrain.loggers.FileLogger"
local c = require "ltrain.c"
local checked_io = require "ltrain.loggers.checked_io"
local csv_field = require "ltrain.core.csv_field"
local media = require "ltrain.loggers.media"
local number_text = require "ltrain.loggers.number_text"
local tree = require "ltrain.core.tree"

local CSVLogger = FileLogger:extend("CSVLogger")

CSVLogger.file = "metrics.csv"
CSVLogger.has_header = true

local function header_of(columns)
  local fields = {}
  for i, name in ipairs(columns) do fields[i] = csv_field.name(name) end
  return table.concat(fields, ",") .. "\n"
end

--- Returns the fields of a header line.
function CSVLogger.read_header(line)
  local columns, at = {}, 1
  while at <= #line + 1 do
    local quoted, after = line:match('^"(.-)"()%f[,\0]', at)
    while quoted and select(2, quoted:gsub('"', "")) % 2 == 1 do
      local more, later = line:match('^(.-)"()%f[,\0]', after)
      quoted, after = quoted .. '"' .. more, later
    end
    if quoted then
      columns[#columns + 1] = quoted:gsub('""', '"')
    else
      local plain
      plain, after = line:match("^([^,]*)()", at)
      columns[#columns + 1] = plain
    end
    at = after + 1
  end
  return columns
end

--- Continues a file with the columns of its header.
function CSVLogger:opened(header)
  self.columns, self.known = {}, {}
  for i, name in ipairs(header and CSVLogger.read_header(header) or {}) do
    self.columns[i], self.known[name] = name, true
  end
end

-- Adds the names of the rows that have no column yet; returns how many there were.
local function add_columns(self, rows)
  local added, names = 0, {}
  if #self.columns == 0 then names = { "epoch", "step" } end
  for _, row in ipairs(rows) do
    for name in tree.pairs(row) do names[#names + 1] = name end
  end
  for _, name in ipairs(names) do
    if not self.known[name] then
      self.known[name], added = true, added + 1
      self.columns[#self.columns + 1] = name
    end
  end
  return added
end

-- Writes the file again with `added` more columns.
local function widen(self, added)
  local parts, first = { header_of(self.columns) }, true
  if c.io.kind(self:path()) then
    local text = checked_io(c.io.read_file(self:path()))
    for line in text:gmatch("[^\n]+") do
      if not first then parts[#parts + 1] = line .. (","):rep(added) .. "\n" end
      first = false
    end
  end
  checked_io(c.io.write_file(self:path(), table.concat(parts)))
end

function CSVLogger:before(rows)
  if not self.columns then self:opened(nil) end
  local added = add_columns(self, rows)
  if added > 0 then widen(self, added) end
end

function CSVLogger:encode(rows)
  local lines = {}
  for i, row in ipairs(rows) do
    local fields = {}
    for j, name in ipairs(self.columns) do
      fields[j] = row[name] ~= nil and number_text(row[name]) or ""
    end
    lines[i] = table.concat(fields, ",") .. "\n"
  end
  return table.concat(lines)
end

-- Media.

local function add(self, entry)
  self:open()
  media.add(self.log_dir, entry)
  self.media = (self.media or 0) + 1
end

function CSVLogger:log_image(name, images, step)
  self:open()
  self.taken = self.taken or {}
  local files = media.write_images(self.log_dir, name, images, step, self.taken)
  add(self, { kind = "image", name = name, step = step, files = files })
end

function CSVLogger:log_text(name, text, step)
  add(self, { kind = "text", name = name, step = step, text = text })
end

function CSVLogger:log_histogram(name, histogram, step)
  local entry = { kind = "histogram", name = name, step = step }
  for key, value in next, histogram do entry[key] = value end
  add(self, entry)
end

--- Logs the samples of a batch whose metric spiked: entry = {value =, usual =, samples = a list of
--- {index =, loss =, text =}}; `images`: their images, u8 tensors [C, H, W], or nil.
function CSVLogger:log_samples(name, entry, images, step)
  local row = { kind = "sample", name = name, step = step }
  for key, value in next, entry do row[key] = value end
  self:open()
  self.taken = self.taken or {}
  row.files = images and media.write_images(self.log_dir, "samples/" .. name, images, step,
    self.taken)
  add(self, row)
end

--- Returns the state for checkpoints.
function CSVLogger:state_dict()
  return { rows = self.count, media = self.media }
end

function CSVLogger:resume(step, state)
  FileLogger.resume(self, step, state)
  if not state then return end
  self.media = state.media
  media.cut(self.log_dir, self.media or 0)
end

return CSVLogger
