--- stdlib/loggers/TensorBoardLogger.lua: writes metrics for TensorBoard to
-- <save_dir>/<name>/version_N/events.out.tfevents.*.
--
-- `tensorboard --logdir <save_dir>/<name>` shows the runs next to each other. An event file is a
-- sequence of records (runtime/io/events.h), each a message `Event` of TensorFlow's event.proto, in
-- the wire format of protocol buffers: the first says the version, the second that a session
-- starts, after which TensorBoard discards what it had read of the run, and every other is a row.
-- The values in it: loggers/summaries.lua.
local FileLogger = require "ltrain.loggers.FileLogger"
local c = require "ltrain.c"
local checked_io = require "ltrain.loggers.checked_io"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local protobuf = require "ltrain.core.protobuf"
local schema = require "ltrain.core.schema"
local secrets = require "ltrain.core.secrets"
local summaries = require "ltrain.loggers.summaries"
local tree = require "ltrain.core.tree"

local TensorBoardLogger = FileLogger:extend("TensorBoardLogger")

local HEAD <const> = 2 -- records before the first row
local bytes <const> = protobuf.bytes
local PATTERN <const> = "^events%.out%.tfevents%."

-- Event: wall_time = 1, step = 2, then what it says.
local function event(step, said)
  return c.io.event_record(protobuf.double(1, c.runtime.time()) .. protobuf.integer(2, step)
    .. said)
end

local function head()
  return event(0, bytes(3, "brain.Event:2")) -- file_version
    .. event(0, bytes(7, protobuf.integer(1, 1))) -- session_log: status START
end

local count = 0 -- of the files that this process has named

-- TensorBoard goes through the files of a run in the order of their names.
local function new_name()
  count = count + 1
  local seconds, fraction = math.modf(c.runtime.time())
  return ("events.out.tfevents.%010d.%s.%06d.%d"):format(seconds, c.runtime.hostname(),
    math.floor(fraction * 1e6), count)
end

TensorBoardLogger.__arguments = "save_dir | name version log_graph default_hp_metric prefix sub_dir"

function TensorBoardLogger:init(save_dir, options)
  FileLogger.init(self, save_dir, options)
  self.file = new_name()
end

--- A row is one event, with the current time rather than the time of writing.
function TensorBoardLogger:row(metrics, step)
  local values = {}
  for name, value in tree.pairs(metrics) do
    if type(value) ~= "number" then
      errors.blame("logger: '%s' must be a number: got %s", name, errors.show(value))
    end
    values[#values + 1] = summaries.scalar(self:name_of(name), value)
  end
  return event(step, bytes(5, table.concat(values))) -- summary
end

-- An event of one value, which counts as a row.
local function add(self, step, value)
  self.rows[#self.rows + 1] = event(step, bytes(5, value))
  self.count = self.count + 1
  self:save()
end

function TensorBoardLogger:log_image(name, images, step)
  add(self, step, summaries.images(self:name_of(name), images))
end

function TensorBoardLogger:log_text(name, text, step)
  add(self, step, summaries.text(self:name_of(name), text))
end

function TensorBoardLogger:log_histogram(name, histogram, step)
  add(self, step, summaries.histogram(self:name_of(name), histogram))
end

--- Shown as a row of TensorBoard's HPARAMS tab.
function TensorBoardLogger:log_hyperparams(params)
  params = secrets.values(params)
  FileLogger.log_hyperparams(self, params)
  if self.has_session or next(params) == nil then return end
  self.has_session = true
  add(self, 0, summaries.session_start(params, c.runtime.time(), self.log_dir))
end

--- Ends the session when the first run ends.
function TensorBoardLogger:finalize(status)
  if self.has_session and not self.session_ended then
    self.session_ended = true
    add(self, 0, summaries.session_end(status == "success", c.runtime.time()))
  end
  self:save()
end

function TensorBoardLogger:before(_)
  if self.has_head then return end
  self.has_head = true
  checked_io(c.io.append_file(self:path(), head()))
end

function TensorBoardLogger:encode(rows)
  return table.concat(rows)
end

-- The event files in its folder.
local function files_of(self)
  local names = {}
  for _, name in ipairs(c.io.list_folder(self.log_dir) or {}) do
    if name:find(PATTERN) then names[#names + 1] = name end
  end
  return names
end

function TensorBoardLogger:begin(fn)
  FileLogger.begin(self, fn)
  self.earlier = self.earlier or files_of(self)
end

--- TensorBoard shows all event files of a folder: those of an earlier run are removed. Those of
--- other loggers of this run stay.
function TensorBoardLogger:replace()
  for _, name in ipairs(self.earlier or files_of(self)) do
    local path = self.log_dir .. "/" .. name
    if c.io.kind(path) then
      console.say(("warning: %s exists: it is replaced"):format(path))
      checked_io(c.io.remove(path))
    end
  end
end

function TensorBoardLogger:state_dict()
  return { rows = self.count, file = self.file, session = self.has_session }
end

-- Where the records of a text end: of the first `most`, as far as they are whole.
local function ends_of(text, most)
  local at, ends = 1, {}
  while #ends < most and at + 12 <= #text do
    local size = string.unpack("<I8", text, at)
    at = at + 12 + size + 4
    if size > #text or at - 1 > #text then break end
    ends[#ends + 1] = at - 1
  end
  return ends
end

--- Replaces the file by one with the rows at the time of the checkpoint; a running TensorBoard
--- reads it again from the start.
function TensorBoardLogger:resume(_, state)
  self.resumed, self.rows = true, {}
  if not state then return end
  schema.check(state, { rows = "count", file = "string", session = "boolean?" },
    "TensorBoardLogger")
  local before = self.log_dir .. "/" .. state.file
  local text = state.file:find(PATTERN) and not state.file:find "/" and c.io.kind(before)
    and c.io.read_file(before)
  if not text then return end
  local ends = ends_of(text, HEAD + state.rows)
  if #ends < HEAD then return end
  self.count = #ends - HEAD
  checked_io(c.io.write_file(self:path(), head() .. text:sub(ends[HEAD] + 1, ends[#ends])))
  self.has_head, self.has_session = true, state.session
  if before ~= self:path() then checked_io(c.io.remove(before)) end
end

return TensorBoardLogger
