--- stdlib/loggers/MLFlowLogger.lua: writes metrics into a file store of MLflow, <save_dir>/mlruns.
--
-- `mlflow ui --backend-store-uri <save_dir>/mlruns` shows it (MLflow 3 requires
-- MLFLOW_ALLOW_FILE_STORE=true), `mlflow migrate-filestore` imports it into a database. A run is a
-- folder <experiment>/<run> of files: meta.yaml, whose values are written as JSON, which YAML
-- contains; metrics/<name>, a line "milliseconds value step" each; params/<name>, tags/<name>;
-- artifacts. The run's own folder has metrics.csv, as with every logger.
local FileLogger = require "ltrain.loggers.FileLogger"
local c = require "ltrain.c"
local checked_io = require "ltrain.loggers.checked_io"
local errors = require "ltrain.core.errors"
local media = require "ltrain.loggers.media"
local number_text = require "ltrain.loggers.number_text"
local schema = require "ltrain.core.schema"
local secrets = require "ltrain.core.secrets"
local tree = require "ltrain.core.tree"
local version = require "ltrain.loggers.version"
local write_unsynced = require "ltrain.core.write_unsynced"

local MLFlowLogger = FileLogger:extend("MLFlowLogger")

MLFlowLogger.options = {
  experiment_name = { type = "string", default = version.NAME, doc = "name of the experiment" },
  run_name = { type = "string", doc = "name of the run; by default that of its folder" },
  tracking_uri = { type = "string",
    doc = "folder of the file store, or a file: URI; by default mlruns in save_dir" },
  tags = { type = "table", default = {}, doc = "strings by name" },
}
for name, row in next, FileLogger.options do MLFlowLogger.options[name] = row end

local RUNNING <const> = 1
local STATUS <const> = { success = 3, failed = 4, interrupted = 5 }
local LONGEST <const> = 6000 -- bytes of a parameter that MLflow takes

-- The folder of the file store.
local function store_of(self)
  local uri = self.tracking_uri
  if not uri then return (self.save_dir == "." and "" or self.save_dir .. "/") .. "mlruns" end
  local path = uri:gsub("^file:/*%f[/]", ""):gsub("^file:", "")
  if path:find "^%a[%w+.-]*:" then
    errors.blame("loggers.MLFlowLogger: tracking_uri must be a folder: got %s: servers and "
      .. "databases take one with `mlflow migrate-filestore`", errors.show(uri))
  end
  return path
end

MLFlowLogger.__arguments = "| experiment_name run_name tracking_uri tags save_dir log_model prefix "
  .. "artifact_location run_id synchronous"

--- MLFlowLogger{experiment_name = "digits", save_dir = "logs"}
function MLFlowLogger:init(options)
  FileLogger.init(self, options or {})
  self.store, self.counts = store_of(self), {}
end

local function milliseconds() return math.floor(c.runtime.time() * 1000) end

-- The first digits of the hash of texts.
local function digest(count, ...) return c.runtime.sha256({ ... }):sub(1, count) end

local function write_meta(folder, fields)
  local lines = {}
  for name, value in tree.pairs(fields) do
    lines[#lines + 1] = ("%s: %s\n"):format(name, c.io.json_encode(value))
  end
  checked_io(c.io.make_folder(folder))
  checked_io(c.io.write_file(folder .. "/meta.yaml", table.concat(lines)))
end

-- file:///... of a path, which is left relative where nobody knows the working folder.
local function uri_of(path)
  local here = c.runtime.getenv "PWD"
  if path:sub(1, 1) ~= "/" then
    if not here or not c.io.same(here, ".") then return path end
    path = here .. "/" .. path
  end
  return "file://" .. path:gsub("[^%w%-%._~/]", function(char)
    return ("%%%02X"):format(char:byte())
  end)
end

-- The number of the experiment of that name, which is made where it is not there. Runs that begin
-- together make the same.
local function experiment_of(self)
  for _, id in ipairs(c.io.list_folder(self.store) or {}) do
    local path = ("%s/%s/meta.yaml"):format(self.store, id)
    local text = c.io.kind(path) and c.io.read_file(path)
    local name = text and text:match "%f[^\n\0]name: ([^\n]*)"
    if name and name:gsub("^(['\"])(.*)%1$", "%2") == self.experiment_name then return id end
  end
  local id = tostring(tonumber(digest(14, self.experiment_name), 16) + 10 ^ 17 // 1 | 0)
  local folder = self.store .. "/" .. id
  write_meta(folder, { name = self.experiment_name, experiment_id = id,
    artifact_location = uri_of(folder), lifecycle_stage = "active",
    creation_time = milliseconds(), last_update_time = milliseconds() })
  return id
end

local function write_field(self, kind, name, text)
  local path = ("%s/%s/%s"):format(self.run_dir, kind, media.path_of(name))
  checked_io(c.io.make_folder((path:match "^(.*)/")))
  checked_io(write_unsynced(path, text))
end

-- meta.yaml of the run.
local function write_state(self, status, ended)
  write_meta(self.run_dir, { run_id = self.run_id, run_name = self.run_name,
    experiment_id = self.experiment_id, artifact_uri = uri_of(self.run_dir .. "/artifacts"),
    user_id = c.runtime.getenv "USER" or "", status = status, start_time = self.started,
    end_time = ended, lifecycle_stage = "active", source_type = 4, source_name = "",
    source_version = "", entry_point_name = "" })
end

local function write_tags(self)
  local tags = secrets.values(self.tags)
  tags["mlflow.runName"], tags["mlflow.source.type"] = self.run_name, "LOCAL"
  tags["mlflow.user"] = c.runtime.getenv "USER"
  for name, value in next, tags do write_field(self, "tags", name, tostring(value)) end
end

function MLFlowLogger:begin(fn)
  FileLogger.begin(self, fn)
  if fn == "fit" then checked_io(c.io.can_write(self.store)) end
end

--- Creates the run's folder in the store at the first write.
function MLFlowLogger:open()
  if self.is_open then return end
  version.choose(self)
  self.experiment_id = experiment_of(self)
  self.started = self.started or milliseconds()
  self.run_id = self.run_id or digest(32, c.runtime.hostname(), tostring(c.runtime.pid()),
    self.log_dir, number_text(c.runtime.time()))
  self.run_name = self.run_name or self.log_dir:match "([^/]*)$"
  self.run_dir = ("%s/%s/%s"):format(self.store, self.experiment_id, self.run_id)
  self.is_open = true
  for _, kind in ipairs { "metrics", "params", "tags", "artifacts" } do
    checked_io(c.io.make_folder(self.run_dir .. "/" .. kind))
  end
  write_state(self, RUNNING)
  write_tags(self)
end

function MLFlowLogger:row(metrics, step)
  local row = FileLogger.row(self, metrics, step)
  row.step = nil
  return { time = milliseconds(), step = step, metrics = row }
end

--- Writes the buffered rows.
function MLFlowLogger:save()
  if #self.rows == 0 then return end
  self:open()
  local lines = {}
  for _, row in ipairs(self.rows) do
    for name, value in next, row.metrics do
      local path = media.path_of(name)
      lines[path] = lines[path] or {}
      table.insert(lines[path], ("%d %s %d\n"):format(row.time, number_text(value), row.step))
    end
  end
  for path, list in tree.pairs(lines) do
    local file = self.run_dir .. "/metrics/" .. path
    checked_io(c.io.make_folder((file:match "^(.*)/")))
    checked_io(c.io.append_file(file, table.concat(list)))
    self.counts[path] = (self.counts[path] or 0) + #list
  end
  self.rows = {}
end

-- {optimizer = {betas = {0.9, 0.99}}} is optimizer/betas, [0.9,0.99].
local function write_params(self, prefix, params)
  for name, value in tree.pairs(params) do
    if type(value) == "table" and type(next(value)) == "string" then
      write_params(self, prefix .. name .. "/", value)
    else
      local text = type(value) == "table" and c.io.json_encode(value, { plain = true })
        or type(value) == "number" and number_text(value) or tostring(value)
      write_field(self, "params", prefix .. name, text:sub(1, LONGEST))
    end
  end
end

function MLFlowLogger:log_hyperparams(params)
  self:open()
  write_params(self, "", secrets.values(params))
end

function MLFlowLogger:log_text(name, text, step)
  self:open()
  write_field(self, "artifacts", ("%s/%06d.txt"):format(name, step), text)
end

function MLFlowLogger:log_image(name, images, step)
  self:open()
  self.taken = self.taken or {}
  media.write_images(self.run_dir .. "/artifacts", name, images, step, self.taken)
end

function MLFlowLogger:finalize(status)
  self:save()
  if self.is_open then write_state(self, STATUS[status], milliseconds()) end
end

--- Returns the state for checkpoints.
function MLFlowLogger:state_dict()
  return { run_id = self.run_id, started = self.started, run_name = self.run_name,
    counts = tree.map(self.counts, function(count) return count end) }
end

--- Continues the run of the checkpoint: its metrics are truncated to the rows that they had then.
function MLFlowLogger:resume(_, state)
  self.resumed, self.rows = true, {}
  if not state then return end
  schema.check(state, { run_id = "string?", started = "count?", run_name = "string?",
    counts = { map = "count" } }, "MLFlowLogger")
  if not state.run_id or not state.run_id:find "^%x+$" then return end
  self.run_id, self.started = state.run_id, state.started
  self.run_name, self.counts = state.run_name, state.counts
  self:open()
  for name, count in tree.pairs(self.counts) do
    local path = self.run_dir .. "/metrics/" .. media.path_of(name)
    local text, kept = c.io.kind(path) and c.io.read_file(path) or "", {}
    for line in text:gmatch "[^\n]+\n" do
      if #kept < count then kept[#kept + 1] = line end
    end
    checked_io(c.io.write_file(path, table.concat(kept)))
  end
end

return MLFlowLogger
