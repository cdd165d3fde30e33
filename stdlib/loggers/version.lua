--- stdlib/loggers/version.lua: the folder <save_dir>/<name>/version_N of a run.
--
-- A number that nobody gave is taken by making its folder, which fails when it is there: of runs
-- that start together each gets a folder of its own.
--
-- The default name was `lightning_logs`, the name of another project. Runs that are there under
-- that name are still found when they are resumed, and their numbers are not used again.
local c = require "ltrain.c"

local version = {}

--- The default `name` of loggers.
version.NAME = "ltrain_logs"

local OLD_NAME <const> = "lightning_logs"

--- The folder that a logger with the default name had before the name changed; else nil.
function version.old_root_dir(logger)
  if logger.name ~= version.NAME then return nil end
  return logger.root_dir:sub(1, -#version.NAME - 1) .. OLD_NAME
end

local function path_of(root_dir, number)
  return ("%s/version_%d"):format(root_dir, number)
end

local function highest(root_dir)
  local number = -1
  for _, entry in ipairs(root_dir and c.io.list_folder(root_dir) or {}) do
    number = math.max(number, math.tointeger(tonumber(entry:match "^version_(%d+)$")) or -1)
  end
  return number
end

-- The number after the highest one that is there.
local function after_highest(logger)
  return math.max(highest(logger.root_dir), highest(version.old_root_dir(logger))) + 1
end

-- The next number, and whether its folder is ours now. Where no folder can be made the number
-- alone is chosen: writing there reports why.
local function take_next(logger)
  local root_dir, number = logger.root_dir, after_highest(logger)
  if not c.io.make_folder(root_dir) then return number, false end
  while true do
    local made, message = c.io.claim_folder(path_of(root_dir, number))
    if made or message then return number, made end
    number = number + 1
  end
end

-- A number for loggers without one: that of another logger of this run, or the next. Ranks other
-- than 0 only look: rank 0's folder counts.
local function number_for(logger, others)
  for _, other in ipairs(others) do
    if other.numbered and other.root_dir == logger.root_dir then return other.version, false end
  end
  if c.dist.rank() > 0 then return after_highest(logger), false end
  return take_next(logger)
end

--- Sets logger.version and logger.log_dir when they are not yet known. `others`: loggers of the
--- same run, which share a folder.
function version.choose(logger, others)
  if logger.log_dir then return end
  if logger.version == nil then
    logger.version, logger.made_folder = number_for(logger, others or {})
    logger.numbered = true
  end
  local name = math.type(logger.version) == "integer" and ("version_%d"):format(logger.version)
    or logger.version
  logger.log_dir = name == "" and logger.root_dir or logger.root_dir .. "/" .. name
end

--- The same for all loggers of a run that write files.
function version.choose_all(loggers)
  for _, logger in ipairs(loggers) do
    if logger.root_dir then version.choose(logger, loggers) end
  end
end

--- A fit is resumed: loggers whose `version` is that of a run under the old name continue its files
--- there.
function version.resume_old(loggers)
  for _, logger in ipairs(loggers) do
    local old = logger.root_dir and version.old_root_dir(logger)
    if old and not logger.log_dir and math.type(logger.version) == "integer" then
      local path = path_of(old, logger.version)
      local is_new = c.io.kind(path_of(logger.root_dir, logger.version))
      if not is_new and c.io.kind(path) then logger.root_dir, logger.log_dir = old, path end
    end
  end
end

--- Before folders are chosen: the loggers go on in those of the run that is resumed, a list.
function version.continue(loggers, folders)
  for i, logger in ipairs(loggers) do
    local folder = folders[i] or ""
    if logger.root_dir and not logger.log_dir
      and folder:sub(1, #logger.root_dir + 1) == logger.root_dir .. "/" then
      local name = folder:sub(#logger.root_dir + 2)
      logger.version = math.tointeger(tonumber(name:match "^version_(%d+)$")) or name
      logger.log_dir = folder
    end
  end
end

--- The folders of loggers, for that: "" of one that has none.
function version.folders(loggers)
  local folders = {}
  for i, logger in ipairs(loggers) do folders[i] = logger.log_dir or "" end
  return folders
end

--- The end of a run: a folder that was made for it and in which nothing was written goes, and the
--- next run chooses another. Rank 0 removes it: another rank may end before the first line is
--- written.
function version.release(loggers)
  if c.dist.rank() > 0 then return end
  for _, logger in ipairs(loggers) do
    if logger.made_folder and c.io.remove(logger.log_dir) then
      local folder = logger.log_dir
      for _, other in ipairs(loggers) do
        if other.numbered and other.log_dir == folder then
          other.version, other.log_dir, other.numbered, other.made_folder = nil, nil, nil, nil
        end
      end
    end
  end
end

--- Ranks that are there before their Trainer write into the folders of rank 0's loggers, however
--- many folders each has seen meanwhile. They have chosen before.
function version.share(loggers, strategy)
  local folders = {}
  for i, logger in ipairs(loggers) do
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
