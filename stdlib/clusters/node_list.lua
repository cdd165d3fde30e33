--- stdlib/clusters/node_list.lua: SLURM's short form of names: "gpu[01-03,7],login".
--
-- Numbers keep their leading zeros. Names are parted by commas or spaces; inside the brackets stand
-- numbers and ranges.
local node_list = {}

local MOST <const> = 65536 -- names that a list may stand for

-- Cuts at commas and spaces outside of brackets; nil and a message for brackets that do not match.
local function cut(text)
  local parts, part, depth = {}, "", 0
  for letter in (text .. ","):gmatch "." do
    if letter == "[" then depth = depth + 1 end
    if letter == "]" then depth = depth - 1 end
    if depth < 0 or depth > 1 then return nil end
    if depth == 0 and letter:find "[,%s]" then
      if part ~= "" then parts[#parts + 1] = part end
      part = ""
    else
      part = part .. letter
    end
  end
  return depth == 0 and parts or nil
end

-- The numbers of "3, 5-9, 012-014" as texts; nil when it is something else.
local function numbers(text)
  local list = {}
  for item in text:gmatch "[^,]+" do
    local first, last = item:match "^%s*(%d+)%s*%-%s*(%d+)%s*$"
    if not first then
      first = item:match "^%s*(%d+)%s*$"
      last = first
    end
    local from, to = tonumber(first), tonumber(last)
    if not from or not to or to < from or to - from >= MOST then return nil end
    for number = from, to do list[#list + 1] = ("%0" .. #first .. "d"):format(number) end
  end
  return #list > 0 and list or nil
end

-- Adds the names that one part stands for; false when it cannot be read, or is too long.
local function add(names, before, rest)
  local head, inside, tail = rest:match "^([^%[]*)%[([^%]]*)%](.*)$"
  if not head then
    names[#names + 1] = before .. rest
    return #names <= MOST
  end
  local list = numbers(inside)
  if not list then return false end
  for _, number in ipairs(list) do
    if not add(names, before .. head .. number, tail) then return false end
  end
  return true
end

--- All names of a list, in its order; nil and what is wrong.
function node_list.expand(text)
  local parts = cut(text)
  local names = {}
  for _, part in ipairs(parts or {}) do
    if not add(names, "", part) then parts = nil break end
  end
  if not parts then return nil, ("not a list of nodes: '%s'"):format(text) end
  return names
end

--- The first name of a list; nil and what is wrong.
function node_list.first(text)
  local names, message = node_list.expand(text)
  if not names then return nil, message end
  return names[1]
end

return node_list
