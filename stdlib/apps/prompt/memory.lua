--- stdlib/apps/prompt/memory.lua: `:mem`: the tensors that are alive, by size.
local c = require "ltrain.c"
local walk = require "ltrain.core.walk"
local wrap_text = require "ltrain.core.wrap_text"

local memory = {}

local MOST <const>, DEPTH <const>, WIDTH <const> = 20, 3, 80

--- "1.5 MiB".
function memory.size(bytes)
  for _, unit in ipairs { { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" } } do
    if bytes >= unit[1] then return ("%.1f %s"):format(bytes / unit[1], unit[2]) end
  end
  return ("%d B"):format(bytes)
end

local function is_tensor(value) return getmetatable(value) == "ltrain.Tensor" end

-- Notes the names of the tensors that a value holds, by their storages.
local function find(found, value, name, depth, seen)
  if is_tensor(value) then
    local id = c.runtime.identity(value)
    found[id] = found[id] or name
    local grad = value.grad
    if grad and not name:find "%.grad$" then find(found, grad, name .. ".grad", depth, seen) end
  elseif type(value) == "table" and depth > 0 and not seen[value] then
    seen[value] = true
    if walk.is_module(value) then
      for _, module in ipairs(walk.modules(value)) do
        for _, item in ipairs(module.tensors) do
          local own = module.name == "" and "" or module.name .. "."
          find(found, item.value, ("%s.%s%s"):format(name, own, item.key), depth, seen)
        end
      end
    end
    for key, item in next, value do
      if type(key) == "string" then
        find(found, item, name .. "." .. key, depth - 1, seen)
      elseif math.type(key) then
        find(found, item, ("%s[%s]"):format(name, key), depth - 1, seen)
      end
    end
  end
end

-- Names of the tensors that globals (locals of a frame) hold.
local function names_of(env, last)
  local found, seen = {}, { [env] = true }
  for _, name in ipairs { "package", "lt", "_G" } do
    local value = rawget(env, name)
    if type(value) == "table" then seen[value] = true end
  end
  local names = {}
  for name in pairs(env) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    if is_tensor(env[name]) then find(found, env[name], name, DEPTH, seen) end
  end
  for _, name in ipairs(names) do find(found, env[name], name, DEPTH, seen) end
  find(found, last, "_", DEPTH, seen)
  return found
end

-- What the entries of one list are called together: "keep[12]" is of "keep[...]".
local function name_together(name)
  local holder = name and name:match "^(.*)%[%d+%]$"
  return holder and holder .. "[...]"
end

-- Tensors that one op made on one line in one shape are one row, unless they have names; entries of
-- one list have one name.
local function rows_of(list, found)
  local rows, by_key, total = {}, {}, 0
  for _, one in ipairs(list) do
    total = total + one.bytes
    local name = found[one.id]
    local what = ("%s %s"):format(one.shape or "", one.dtype or "")
    local together = name_together(name)
    local key = name and not together and name
      or ("%s|%s|%s|%s"):format(together, one.op, one.line, what)
    local row = by_key[key]
    if not row then
      row = { bytes = 0, count = 0, name = name, what = what, op = one.op, line = one.line }
      by_key[key], rows[#rows + 1] = row, row
    end
    row.bytes, row.count = row.bytes + one.bytes, row.count + 1
    if row.count > 1 then row.name = together end
  end
  table.sort(rows, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    return (a.name or a.what) < (b.name or b.what)
  end)
  return rows, total
end

local function line_of(row)
  local parts = { ("%11s"):format(memory.size(row.bytes)) }
  parts[#parts + 1] = (row.count > 1 and ("%d of "):format(row.count) or "") .. row.what
  if row.name then parts[#parts + 1] = row.name end
  if row.op then parts[#parts + 1] = "by " .. row.op end
  if row.line then parts[#parts + 1] = "at " .. row.line end
  local line = table.concat(parts, "  ")
  return #line <= WIDTH and line or wrap_text(table.concat(parts, "  ", 2), (" "):rep(13),
    parts[1] .. "  ")
end

--- The text of a device: its largest tensors, then sums; nil where nothing is alive.
function memory.text(device, env, last)
  local list = c.runtime.live_tensors(device)
  local use = c.runtime.memory(device)
  if use.live_bytes == 0 then return nil end
  local rows, total = rows_of(list, names_of(env, last))
  local lines = {}
  for i = 1, math.min(#rows, MOST) do lines[i] = line_of(rows[i]) end
  if #rows > MOST then lines[#lines + 1] = ("  ... %d more lines"):format(#rows - MOST) end
  lines[#lines + 1] = wrap_text(("%s: %s in %d tensors; %s in use with those not listed, peak %s, "
    .. "%s cached"):format(device, memory.size(total), #list, memory.size(use.live_bytes),
    memory.size(use.peak_bytes), memory.size(use.cached_bytes)), "  ", "")
  return table.concat(lines, "\n")
end

return memory
