--- stdlib/runs/entry.lua: what a run.json says, and whether that is still so.
local process = require "ltrain.runs.process"
local record = require "ltrain.runs.record"

local entry = {}

--- The status of a run: "killed" where its process is gone, although it says that it runs.
function entry.status(of)
  if of.status ~= "running" then return of.status or "unknown" end
  local is_known = type(of.process) == "table"
  return is_known and process.is_alive(of.process) == false and "killed" or "running"
end

--- What keeps this version from reading it; nil: nothing. `path` is that of its folder.
function entry.refuse(path, of)
  if next(of) ~= nil and math.type(of.format) ~= "integer" then
    return ("%s/%s: has no format"):format(path, record.FILE)
  elseif of.format and of.format > record.FORMAT then
    return ("%s/%s: has format %d, this version of ltrain reads up to %d"):format(path,
      record.FILE, of.format, record.FORMAT)
  end
end

--- Hyper-parameters in one table: those of a table within are `outer.inner`; of a list `name.1`.
function entry.flat(hparams, prefix, into)
  into = into or {}
  for name, value in next, hparams do
    local full = (prefix or "") .. tostring(name)
    if type(value) == "table" then
      entry.flat(value, full .. ".", into)
    else
      into[full] = value
    end
  end
  return into
end

return entry
