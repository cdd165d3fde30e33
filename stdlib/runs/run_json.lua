--- stdlib/runs/run_json.lua: validates the fields of run.json, and derives the status of the run
--- from its process.
local process = require "ltrain.runs.process"
local record = require "ltrain.runs.record"

local run_json = {}

-- What a field has to be; a list of texts, or of tables, is "texts", "tables". Others are as they
-- are.
local TYPES <const> = { status = "string", started = "number", ended = "number", epoch = "number",
  step = "number", seed = "number", ranks = "number", threads = "number", command = "texts",
  script = "string", script_sha256 = "string", error = "string", process = "table",
  loops = "tables", devices = "texts", hosts = "texts", data_sha256 = "string",
  version = "string", loop = "string",
  best_checkpoint = "string", last_checkpoint = "string", resumed_from = "string" }
local OF_LISTS <const> = { texts = "string", tables = "table" }

local function is_list(value, kind)
  if type(value) ~= "table" or next(value) ~= nil and #value == 0 then return false end
  for _, one in next, value do
    if type(one) ~= kind then return false end
  end
  return true
end

--- Takes the fields away that are not what they have to be: a folder may be anybody's.
function run_json.clean(of)
  for name, kind in next, TYPES do
    local value, item = of[name], OF_LISTS[kind]
    local right = item and is_list(value, item) or not item and type(value) == kind
    if value ~= nil and not right then of[name] = nil end
  end
  local who = of.process
  if who and (type(who.host) ~= "string" or math.type(who.pid) ~= "integer") then
    of.process = nil
  end
  for _, loop in ipairs(of.loops or {}) do run_json.clean(loop) end
  return of
end

--- The status of a run: "killed" where its process is gone, although it says that it runs.
function run_json.status(of)
  if of.status ~= "running" then return of.status or "unknown" end
  local is_known = type(of.process) == "table"
  return is_known and process.is_alive(of.process) == false and "killed" or "running"
end

--- What keeps this version from reading it; nil: nothing. `path` is that of its folder.
function run_json.refuse(path, of)
  if next(of) ~= nil and math.type(of.format) ~= "integer" then
    return ("%s/%s: has no format"):format(path, record.FILE)
  elseif of.format and of.format > record.FORMAT then
    return ("%s/%s: has format %d, this version of ltrain reads up to %d"):format(path,
      record.FILE, of.format, record.FORMAT)
  end
end

--- Hyper-parameters in one table: those of a table within are `outer.inner`; of a list `name.1`.
function run_json.flat(hparams, prefix, into)
  into = into or {}
  for name, value in next, hparams do
    local full = (prefix or "") .. tostring(name)
    if type(value) == "table" then
      run_json.flat(value, full .. ".", into)
    else
      into[full] = value
    end
  end
  return into
end

return run_json
