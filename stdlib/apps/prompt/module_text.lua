--- stdlib/apps/prompt/module_text.lua: formats a module for the prompt: its tree, tensor shapes and
--- parameter counts.
local module_print = require "ltrain.nn.module_print"
local parameter_counts = require "ltrain.core.parameter_counts"
local walk = require "ltrain.core.walk"

local MOST <const>, WIDTH <const> = 50, 80 -- lines, columns

-- 1234567 as "1,234,567".
local function grouped(n)
  local text = ("%d"):format(n):reverse():gsub("%d%d%d", "%0,"):reverse()
  return (text:gsub("^,", ""))
end

local function label(keys)
  local parts = {}
  for i, key in ipairs(keys) do
    parts[i] = math.type(key) and ("[%d]"):format(key) or (i > 1 and "." or "") .. tostring(key)
  end
  return table.concat(parts)
end

local function tensors_of(entry)
  local parts = {}
  for _, item in ipairs(entry.tensors) do
    local x = item.value
    parts[#parts + 1] = ("%s [%s]%s"):format(label(walk.way(item)), table.concat(x.shape, ", "),
      item.buffer and " buffer" or not x.requires_grad and " frozen" or "")
  end
  return parts
end

-- Rows { text of the tree, count, tensors } of a module and of those in it.
local function add_rows(rows, by_module, counts, module, name, indent, above)
  local entry, class = by_module[module], walk.class_name(module)
  local children, extra = entry.children, module:extra_repr()
  local text = ("%s%s%s"):format(indent, name ~= "" and name .. "  " or "", class)
  if extra ~= "" or #children == 0 then text = ("%s(%s)"):format(text, extra) end
  if above[module] then
    rows[#rows + 1] = { text .. " (again)", "", {} }
    return
  end
  rows[#rows + 1] = { text, counts[module] > 0 and grouped(counts[module]) or "",
                      tensors_of(entry) }
  above[module] = true
  for _, child in ipairs(children) do
    add_rows(rows, by_module, counts, child.value, label(walk.way(child)), indent .. "  ", above)
  end
end

local function columns(text) return utf8.len(text) or #text end

-- A row, with its tensors in lines behind `indent` where they do not fit into the first.
local function add_line(lines, line, tensors, indent)
  for i, part in ipairs(tensors) do
    part = part .. (i < #tensors and "," or "")
    local between = i == 1 and "  " or " "
    if columns(line) + #between + #part > WIDTH and line:find "%S" then
      lines[#lines + 1] = (line:gsub("%s+$", ""))
      line, between = indent, ""
    end
    line = line .. between .. part
  end
  lines[#lines + 1] = (line:gsub("%s+$", ""))
end

local function layout(rows)
  local widest, count, lines = 0, 0, {}
  for _, row in ipairs(rows) do
    widest = math.max(widest, columns(row[1]))
    count = math.max(count, #row[2])
  end
  widest = math.min(widest, WIDTH - count - 2)
  local longest = 0
  for _, row in ipairs(rows) do
    for _, part in ipairs(row[3]) do longest = math.max(longest, columns(part) + 1) end
  end
  -- Tensors stand below each other, as far to the right as all of them fit.
  local indent = (" "):rep(math.max(4, math.min(widest + count + 4, WIDTH - longest)))
  for _, row in ipairs(rows) do
    local line = row[1]
    if columns(line) > widest then -- the count in a line of its own
      lines[#lines + 1] = line
      line = ""
    end
    line = line .. (" "):rep(widest - columns(line) + 2) .. (" "):rep(count - #row[2]) .. row[2]
    add_line(lines, line, row[3], indent)
  end
  return lines
end

--- The text; nil for a module whose class has a text of its own.
return function(module)
  if getmetatable(module).__tostring ~= module_print.text then return nil end
  local modules = walk.modules(module)
  local counts, trainable = parameter_counts(modules)
  local by_module, rows = {}, {}
  for _, entry in ipairs(modules) do by_module[entry.module] = entry end
  add_rows(rows, by_module, counts, module, "", "", {})
  local shown = table.move(rows, 1, math.min(#rows, MOST), 1, {})
  local lines = layout(shown)
  if #rows > MOST then lines[#lines + 1] = ("... %d more modules"):format(#rows - MOST) end
  lines[#lines + 1] = ("%s parameters, %s trainable"):format(grouped(counts[module]),
    trainable == counts[module] and "all" or grouped(trainable))
  return table.concat(lines, "\n")
end
