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

--- Ranks that are there before their Trainer write into the folders of rank 0's loggers, however
--- many folders each has seen meanwhile.
function version.share(loggers, strategy)
  local folders = {}
  for i, logger in ipairs(loggers) do
    if logger.root_dir then version.choose(logger) end
    folders[i] = { version = logger.version, log_dir = logger.log_dir }
  end
  folders = strategy:broadcast(folders)
  for i, logger in ipairs(loggers) do
    local folder = folders[i]
    if folder and folder.log_dir then
      logger.version, logger.log_dir = folder.version, folder.log_dir
    end
  end
end

return version
