--- stdlib/apps/dashboard/FileTail.lua: reads the new lines of a growing file, as `tail -f`.
--
-- Only what is new is read, piece by piece. A file that was written again, cut or replaced is read
-- from its start: the last bytes that were taken are checked again before what follows is
-- believed to continue them.
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local FileTail = class.extend(nil, "Follow")

local PIECE <const> = 1 << 20
local LONGEST <const> = 1 << 26 -- of a line
local TAIL <const> = 256

--- `place`: {root =, path =} of the folder; `name`: the file's.
function FileTail:init(place, name)
  self.place, self.name = place, name
  self.taken, self.tail = 0, ""
end

local function path_of(self)
  return self.place.path == "" and self.name or self.place.path .. "/" .. self.name
end

local function forget(self)
  self.taken, self.tail, self.seen = 0, "", nil
end

--- Whether what was taken is still there.
function FileTail:continues()
  local text, size, _, number = c.io.read_below(self.place.root, path_of(self),
    self.taken - #self.tail, #self.tail)
  return text == self.tail and self.number == number and size >= self.taken
end

-- Reads on to the end; take(text) says how many bytes it has taken, nil and a reason.
local function read_on(self, take)
  local piece = PIECE
  while true do
    local text, size = c.io.read_below(self.place.root, path_of(self), self.taken, piece)
    if not text then return nil, size end
    if text == "" then return true end
    local taken, message = take(text, self.taken)
    if not taken then return nil, message end
    self.taken = self.taken + taken
    if taken > 0 then
      self.tail = (self.tail .. text:sub(1, taken)):sub(-TAIL)
    end
    if self.taken >= size or (taken == 0 and #text < piece) then return true end
    if taken == 0 then piece = piece * 4 end
    if piece > LONGEST then return nil, ("%s: a line is too long"):format(self.name) end
  end
end

--- Looks at the file. restart() is called where it does not continue what was taken before, then
--- take(text, position) for what is new. Returns whether there was anything new; nil and a reason
--- where it cannot be read; false, true where it is gone.
function FileTail:poll(take, restart)
  local kind, size, modified, number = c.io.stat_below(self.place.root, path_of(self))
  if kind ~= "file" then
    local was = self.seen ~= nil
    if was then
      restart()
      forget(self)
    end
    return false, was
  end
  local mark = ("%d %.9f %d"):format(size, modified, number)
  if self.seen == mark then return false end
  if self.seen and not self:continues() then
    restart()
    forget(self)
  end
  self.number = number
  local before = self.taken
  local ok, message = read_on(self, take)
  if not ok then
    self.seen = mark
    return nil, message
  end
  self.seen = mark
  return self.taken > before or before == 0
end

return FileTail
