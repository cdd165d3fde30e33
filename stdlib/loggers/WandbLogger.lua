--- stdlib/loggers/WandbLogger.lua: writes metrics for Weights & Biases to
--- <save_dir>/wandb/offline-run-ID/run-ID.wandb.
--
-- `wandb sync`, run in save_dir, uploads it; the logger opens no connection. The file is a log of
-- LevelDB, blocks of 32 KiB with records that may span several, behind seven bytes of W&B's own;
-- each is a message `Record` of wandb_internal.proto: header, run, the x axis of charts, config, a
-- history row and the summary for each row of metrics, and exit. Images and tables are files below
-- files/media beside it, each with a record, and values in a row of their own. The run's own folder
-- has metrics.csv, as with every logger.
local FileLogger = require "ltrain.loggers.FileLogger"
local c = require "ltrain.c"
local checked_io = require "ltrain.loggers.checked_io"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local media = require "ltrain.loggers.media"
local number_text = require "ltrain.loggers.number_text"
local protobuf = require "ltrain.core.protobuf"
local schema = require "ltrain.core.schema"
local secrets = require "ltrain.core.secrets"
local tree = require "ltrain.core.tree"
local version = require "ltrain.loggers.version"
local write_unsynced = require "ltrain.core.write_unsynced"

local WandbLogger = FileLogger:extend("WandbLogger")

local function check_id(id)
  if not id:find "^[%w_-]+$" then
    return "must be letters, digits, _ and -: got " .. errors.show(id)
  end
end

WandbLogger.options = {
  project = { type = "string", default = "ltrain", doc = "project of the run" },
  entity = { type = "string", doc = "user or team that owns the project" },
  group = { type = "string", doc = "group of runs" },
  job_type = { type = "string", doc = "type of the run, such as train or eval" },
  tags = { type = "table", default = {}, doc = "list of strings" },
  notes = { type = "string", doc = "description of the run" },
  offline = { type = "boolean", default = true, choices = { true },
    doc = "runs are written to files; upload them with `wandb sync`" },
  id = { type = "string", check = check_id,
    doc = "id of the run in the project; by default a new one" },
}
for name, row in next, FileLogger.options do WandbLogger.options[name] = row end

WandbLogger.__arguments = "| name save_dir version offline dir id anonymous project log_model "
  .. "experiment prefix checkpoint_name add_file_policy"

--- WandbLogger{project = "digits", save_dir = "logs"}
function WandbLogger:init(options) FileLogger.init(self, options or {}) end

local bytes <const>, integer <const> = protobuf.bytes, protobuf.integer
local START <const> = ":W&B" .. string.pack("<I2I1", 0xBEE1, 0) -- and the version of the format
local BLOCK <const>, HEAD <const> = 32768, 7
local WHOLE <const>, FIRST <const>, MIDDLE <const>, LAST <const> = 1, 2, 3, 4
local AXIS <const> = "trainer/global_step"
local EXIT <const> = { success = 0, failed = 1, interrupted = 255 } -- as W&B's own

-- The log's text of a message that follows `size` bytes.
local function framed(message, size)
  local parts, at, is_first = {}, 1, true
  repeat
    local left = BLOCK - size % BLOCK
    if left < HEAD then
      parts[#parts + 1], size, left = ("\0"):rep(left), size + left, BLOCK
    end
    local piece = message:sub(at, at + left - HEAD - 1)
    at = at + #piece
    local is_last = at > #message
    local kind = is_first and (is_last and WHOLE or FIRST) or is_last and LAST or MIDDLE
    local crc = c.io.crc32(c.from_bytes(string.char(kind) .. piece, "u8"))
    parts[#parts + 1] = string.pack("<I4I2I1", crc, #piece, kind) .. piece
    size, is_first = size + HEAD + #piece, false
  until is_last
  return table.concat(parts)
end

-- Values as W&B's JSON has them.
local function json(value)
  if type(value) ~= "number" then return c.io.json_encode(value, { plain = true }) end
  if value ~= value then return "NaN" end
  return (number_text(value):gsub("inf", "Infinity"))
end

-- Items of a message, in the field `number`: names and values.
local function items(number, key_field, values)
  local list = {}
  for name, value in tree.pairs(values) do
    list[#list + 1] = bytes(number, bytes(key_field, name) .. bytes(16, json(value)))
  end
  return table.concat(list)
end

-- A Record: `field` is that of its kind.
local function record(self, field, message)
  self.records = self.records + 1
  return integer(1, self.records) .. bytes(field, message)
end

local function seconds(field, time)
  return bytes(field, integer(1, math.floor(time)) .. integer(2, math.floor(time % 1 * 1e9)))
end

local function optional(field, text) return text and bytes(field, text) or "" end

local function list_of(field, texts)
  local parts = {}
  for i, text in ipairs(texts) do parts[i] = bytes(field, text) end
  return table.concat(parts)
end

local function new_id(self)
  return c.runtime.sha256({ c.runtime.hostname(), tostring(c.runtime.pid()), self.log_dir,
    number_text(c.runtime.time()) }):sub(1, 8)
end

-- The name of a run: its own where it has one, or the last two of its folder.
local function display_name(self)
  return self.name ~= version.NAME and self.name or self.log_dir:match "[^/]*/?[^/]*$"
end

-- The file of a run: W&B uploads those in folders that begin with offline-.
local function name_file(self, id)
  local root = self.save_dir == "." and "wandb" or self.save_dir .. "/wandb"
  self.id, self.file = id, ("%s/offline-run-%s/run-%s.wandb"):format(root, id, id)
end

--- Returns the path of the file.
function WandbLogger:path() return self.file end

-- The records that begin a run.
local function head(self)
  return record(self, 21, bytes(1, bytes(1, "0.31.0") .. bytes(2, "0.70.0"))), -- header: versions
    record(self, 17, bytes(1, self.id) .. optional(2, self.entity) .. bytes(3, self.project)
      .. optional(6, self.group) .. optional(7, self.job_type) .. bytes(8, display_name(self))
      .. optional(9, self.notes) .. list_of(10, self.tags)
      .. bytes(13, c.runtime.hostname()) .. seconds(17, self.started)),
    record(self, 12, bytes(1, AXIS) .. bytes(6, integer(3, 1))), -- metric: defined
    record(self, 12, bytes(2, "*") .. bytes(4, AXIS) .. bytes(6, integer(1, 1) .. integer(3, 1)))
end

local function append(self, ...)
  local parts = {}
  for _, message in ipairs { ... } do
    parts[#parts + 1] = framed(message, self.size)
    self.size = self.size + #parts[#parts]
  end
  checked_io(c.io.append_file(self.file, table.concat(parts)))
end

-- Keeps the first bytes of the file.
local function cut(self, size)
  checked_io(c.io.write_file(self.file, checked_io(c.io.read_file(self.file)):sub(1, size)))
  self.size = size
end

--- Creates the file at the first write of a run.
function WandbLogger:open()
  if self.is_open then
    if self.exit_at then -- another loop of the Trainer
      cut(self, self.exit_at)
      self.exit_at, self.records = nil, self.records - 1
    end
    return
  end
  FileLogger.open(self)
  if self.size then return end -- resumed
  name_file(self, self.id or new_id(self))
  self.started, self.records, self.size = c.runtime.time(), 0, #START
  if c.io.kind(self.file) then
    console.say(("warning: %s exists: it is replaced"):format(self.file))
  end
  checked_io(c.io.make_folder(self.file:match "^(.*)/" .. "/files")) -- `wandb sync` writes there
  checked_io(c.io.write_file(self.file, START))
  append(self, head(self))
end

--- Does nothing: the file is named when the run begins.
function WandbLogger:replace() end

--- Chooses the folder when a run of `fn` begins.
function WandbLogger:begin(fn)
  FileLogger.begin(self, fn)
  if fn == "fit" then checked_io(c.io.can_write(self.save_dir .. "/wandb")) end
end

function WandbLogger:row(metrics, step)
  local row = FileLogger.row(self, metrics, nil)
  row[AXIS], row._timestamp = step, c.runtime.time()
  return row
end

--- Writes the buffered rows, each as a separate step, since several may belong to one optimizer
--- step.
function WandbLogger:save()
  if #self.rows == 0 then return end
  self:open()
  local messages, first = {}, self.count - #self.rows
  for i, row in ipairs(self.rows) do
    row._step, row._runtime = first + i - 1, row._timestamp - self.started
    messages[2 * i - 1] = record(self, 2, items(1, 2, row) .. bytes(2, integer(1, row._step)))
    messages[2 * i] = record(self, 3, items(1, 2, row)) -- summary
  end
  append(self, table.unpack(messages))
  self.rows = {}
end

-- Writes a file below files/media, which W&B uploads; returns its path there, its size and hash.
local function write_media(self, kind, name, suffix, contents)
  self:open()
  local path = ("media/%s/%s_%d%s"):format(kind, media.path_of(name), self.count, suffix)
  local full = self.file:match "^(.*)/" .. "/files/" .. path
  checked_io(c.io.make_folder(full:match "^(.*)/"))
  checked_io(write_unsynced(full, contents))
  append(self, record(self, 6, bytes(1, bytes(1, path))))
  return path, #contents, c.runtime.sha256 { contents }
end

--- Writes images, one or several below a name.
function WandbLogger:log_image(name, images, step)
  local png <const> = require "ltrain.loggers.png"
  local list = { _type = "images/separated", format = "png", count = #images, filenames = {},
    width = images[1].shape[3], height = images[1].shape[2] }
  local size, hash
  for i, image in ipairs(images) do
    list.filenames[i], size, hash = write_media(self, "images", name, ("_%d.png"):format(i - 1),
      png(image))
  end
  self:log_metrics({ [name] = #images > 1 and list or { _type = "image-file", format = "png",
    path = list.filenames[1], size = size, sha256 = hash, width = list.width,
    height = list.height } }, step)
end

--- Writes a text as a table of one cell.
function WandbLogger:log_text(name, text, step)
  local path <const>, size <const>, hash <const> = write_media(self, "table", name, ".table.json",
    c.io.json_encode({ columns = { "text" }, data = { { text } } }, { plain = true }))
  self:log_metrics({ [name] = { _type = "table-file", path = path, size = size, sha256 = hash,
    ncols = 1, nrows = 1 } }, step)
end

function WandbLogger:log_histogram(name, histogram, step)
  self:log_metrics({ [name] = { _type = "histogram", values = histogram.counts,
    bins = histogram.edges } }, step)
end

function WandbLogger:log_hyperparams(params)
  params = secrets.values(params)
  FileLogger.log_hyperparams(self, params)
  append(self, record(self, 5, items(1, 1, params)))
end

function WandbLogger:finalize(status)
  self:save()
  if not self.is_open or self.exit_at then return end
  self.exit_at = self.size
  append(self, record(self, 18, integer(1, EXIT[status])
    .. integer(2, math.floor(c.runtime.time() - self.started))))
end

--- Returns the state for checkpoints.
function WandbLogger:state_dict()
  return { rows = self.count, id = self.id, started = self.started, records = self.records,
    bytes = self.size }
end

--- Continues the run of the checkpoint: its file is truncated to its size then.
function WandbLogger:resume(_, state)
  self.resumed, self.rows = true, {}
  if not state then return end
  schema.check(state, { rows = "count", id = "string?", started = "number?", records = "count?",
    bytes = "count?" }, "WandbLogger")
  if not state.id or not state.id:find "^[%w_-]+$" then return end
  name_file(self, state.id)
  if not state.bytes or not c.io.kind(self.file) then return end
  self.started = state.started
  self.count, self.records = state.rows, state.records
  cut(self, state.bytes)
end

return WandbLogger
