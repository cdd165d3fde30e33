--- stdlib/loggers/version.lua: the folder <save_dir>/<name>/version_N of a run.
local c = require "ltrain.c"

local version = {}

--- The number after the highest one that is there.
function version.next(root_dir)
  local highest = -1
  for _, entry in ipairs(c.io.list_folder(root_dir) or {}) do
    highest = math.max(highest, math.tointeger(tonumber(entry:match "^version_(%d+)$")) or -1)
  end
  return highest + 1
end

--- Sets logger.version and logger.log_dir when they are not yet known.
function version.choose(logger)
  if logger.log_dir then return end
  if logger.version == nil then logger.version = version.next(logger.root_dir) end
  local name = math.type(logger.version) == "integer" and ("version_%d"):format(logger.version)
    or logger.version
  logger.log_dir = name == "" and logger.root_dir or logger.root_dir .. "/" .. name
end

return version
