--- stdlib/apps/dashboard/RunMetrics.lua: the metrics of a run in memory, read from its file as it
--- grows.
--
-- `generation` changes when rows that were there before are no more: the run was resumed at an
-- earlier step, or the file is another one. A file that was written again with what it had, as it
-- is for a new column, continues.
local FileTail = require "ltrain.apps.dashboard.FileTail"
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local RunMetrics = class.extend(nil, "RunMetrics")

local MOST <const> = 1 << 28 -- bytes of memory of all
local loaded = {} -- those with rows in memory
local total, ticks = 0, 0
local generations = math.floor(c.runtime.time())

--- `name`: metrics.csv, or another file of that form.
function RunMetrics:init(run, name)
  self.run, self.name, self.bytes = run, name or "metrics.csv", 0
  self.generation = generations
end

local function new_generation(self)
  generations = generations + 1
  self.generation = generations
end

local function begin(self)
  self.curves, self.follow = c.io.curves(), FileTail(self.run, self.name)
end

local function forget(self)
  total, self.bytes = total - self.bytes, 0
  self.curves, self.follow, self.dropped = nil, nil, self.follow
  loaded[self] = nil
end

-- Those that were not asked for longest go, but this one.
local function make_room(self)
  while total > MOST do
    local oldest
    for one in next, loaded do
      if one ~= self and (not oldest or one.used < oldest.used) then oldest = one end
    end
    if not oldest then return end
    forget(oldest)
  end
end

local function count(self)
  local rows, bytes = self.curves:size()
  total, self.bytes = total + bytes - self.bytes, bytes
  ticks = ticks + 1
  self.rows, self.used, loaded[self] = rows, ticks, true
  make_room(self)
end

--- Reads what is new. Returns the curves; nil and a reason where the file is none.
function RunMetrics:update()
  if not self.curves then begin(self) end
  local before
  local function restart()
    before = before or self.curves
    self.curves = c.io.curves()
  end
  local function take(text) return self.curves:feed(text) end
  local new, message = self.follow:poll(take, restart)
  if before and not self.curves:extends(before) then new_generation(self) end
  if self.dropped and not self.dropped:continues() then new_generation(self) end
  self.dropped = nil
  count(self)
  if new ~= false then
    self.problem = message
  elseif message then -- it is gone
    self.problem = nil
  end
  if self.problem then return nil, self.problem end
  return self.curves
end

--- The number of a metric in curves:names(); nil without it.
function RunMetrics:find(name)
  for k, one in ipairs(self.curves:names()) do
    if one == name then return k end
  end
end

return RunMetrics
