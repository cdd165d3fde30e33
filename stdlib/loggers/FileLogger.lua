--- stdlib/loggers/FileLogger.lua: the base class of loggers that write rows to a file.
--
-- A subclass defines `file` (its name), `encode(rows)` (returns their text) and, if needed,
-- `before(rows)` and `opened(text)`; if its rows are not lines it also overrides `row`, `replace`
-- and `resume`. Rows are buffered until there are `flush_logs_every_n_steps` of them, or the first
-- is `flush_secs` old.
local Logger = require "ltrain.core.Logger"
local c = require "ltrain.c"
local checked_io = require "ltrain.loggers.checked_io"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local duration = require "ltrain.core.duration"
local schema = require "ltrain.core.schema"
local secrets = require "ltrain.core.secrets"
local version = require "ltrain.loggers.version"

local FileLogger = Logger:extend("FileLogger")

FileLogger.options = {
  name = { type = "string", default = version.NAME, doc = "folder below save_dir" },
  version = { type = "integer|string", doc = "folder below name; by default the next version_N" },
  prefix = { type = "string", default = "", doc = "prefix of the names of metrics" },
  flush_logs_every_n_steps = { type = "integer", default = 100, min = 1,
    doc = "rows to buffer before writing" },
  flush_secs = duration.in_seconds("time after which the next row flushes the buffer",
    { default = 5, min = 0 }),
}

FileLogger.__arguments = "save_dir | name version prefix flush_logs_every_n_steps"

--- CSVLogger("logs", {name = "digits"}): the folder, then the options.
function FileLogger:init(save_dir, options)
  local where = "loggers." .. getmetatable(self).__name
  if type(save_dir) == "table" and options == nil then
    options, save_dir = {}, save_dir
    for name, value in next, save_dir do options[name] = value end
    save_dir, options.save_dir = options.save_dir, nil
  end
  local o = config.check(options, self.options, where)
  for name, value in next, o do self[name] = value end
  self.save_dir = config.argument(save_dir or ".", "string", where, "save_dir")
  local prefix = self.save_dir == "." and "" or self.save_dir .. "/"
  self.root_dir = o.name == "" and self.save_dir or prefix .. o.name
  self.rows, self.count = {}, 0
end

--- Chooses the folder when a run of `fn` ("fit", "test", ...) begins. If it is not writable, `fit`
--- raises an error immediately, not after the first epoch.
function FileLogger:begin(fn)
  version.choose(self)
  if fn == "fit" then checked_io(c.io.can_write(self.log_dir)) end
end

--- Returns the path of the file.
function FileLogger:path()
  return self.log_dir .. "/" .. self.file
end

--- Removes the file of an earlier run that has the same name.
function FileLogger:replace()
  if not c.io.kind(self:path()) then return end
  console.say(("warning: %s exists: it is replaced"):format(self:path()))
  checked_io(c.io.write_file(self:path(), ""))
end

--- Creates the folder at the first write of a run.
function FileLogger:open()
  if self.is_open then return end
  version.choose(self)
  checked_io(c.io.make_folder(self.log_dir))
  if not self.resumed then self:replace() end
  self.is_open = true
end

--- Returns the name of a metric in the file.
function FileLogger:name_of(metric)
  return metric == "epoch" and metric or self.prefix .. metric
end

--- Returns a row as it is buffered.
function FileLogger:row(metrics, step)
  local row = { step = step }
  for name, value in pairs(metrics) do
    row[self:name_of(name)] = value
  end
  return row
end

function FileLogger:log_metrics(metrics, step)
  self.rows[#self.rows + 1] = self:row(metrics, step)
  self.count = self.count + 1
  local now = c.runtime.clock()
  if #self.rows == 1 then self.buffered = now end
  if #self.rows >= self.flush_logs_every_n_steps or now - self.buffered >= self.flush_secs then
    self:save()
  end
end

--- Writes the buffered rows.
function FileLogger:save()
  if #self.rows == 0 then return end
  self:open()
  if self.before then self:before(self.rows) end
  checked_io(c.io.append_file(self:path(), self:encode(self.rows)))
  self.rows = {}
end

function FileLogger:log_hyperparams(params)
  params = secrets.values(params)
  self:open()
  local text = c.io.json_encode(params, { plain = true }) .. "\n"
  checked_io(c.io.write_file(self.log_dir .. "/hparams.json", text))
end

--- Returns the state for checkpoints.
function FileLogger:state_dict()
  return { rows = self.count }
end

-- Lines of a text, without their ends.
local function lines_of(text)
  local lines = {}
  for line in text:gmatch("[^\n]+") do lines[#lines + 1] = line end
  return lines
end

--- Truncates the file to the rows that it had when the checkpoint was saved.
function FileLogger:resume(_, state)
  self.resumed, self.rows = true, {}
  local text = c.io.kind(self:path()) and c.io.read_file(self:path())
  if not text or not state then return end
  schema.check(state, { rows = "count", media = "count?" }, getmetatable(self).__name)
  local lines, keep = lines_of(text), {}
  local header = self.has_header and 1 or 0
  for i = 1, math.min(#lines, state.rows + header) do keep[i] = lines[i] end
  self.count = math.max(#keep - header, 0)
  if self.opened then self:opened(keep[1]) end
  checked_io(c.io.write_file(self:path(), #keep > 0 and table.concat(keep, "\n") .. "\n" or ""))
end

return FileLogger
