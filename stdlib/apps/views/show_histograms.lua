--- stdlib/apps/views/show_histograms.lua: prints the weights and gradients of a module as
--- histograms.
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local terminal = require "ltrain.apps.views.terminal"
local walk = require "ltrain.core.walk"

local BARS <const> = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }
local PLAIN <const> = { ".", ":", "-", "=", "+", "*", "#", "@" }

local OPTIONS <const> = {
  bins = { type = "integer", default = 24, min = 2, max = 200, doc = "letters of a histogram" },
  match = { type = "string", default = "", doc = "a pattern of Lua: only names that have it" },
}

-- The histogram of finite values as letters: a blank has nothing, the lowest letter little.
local function bars(x, low, high, bins, letters)
  local counts = c.histc(x, bins, low, high):tolist()
  local most, parts = math.max(table.unpack(counts)), {}
  for i, count in ipairs(counts) do
    parts[i] = count == 0 and " " or terminal.letter(letters, (count - 1) / most)
  end
  return table.concat(parts)
end

-- The columns of a tensor: least value, histogram, greatest, mean, standard deviation, remarks.
local function columns_of(x, o, letters)
  x = x:detach():cpu():to(x.dtype == "f64" and "f64" or "f32"):flatten()
  local finite = x:isfinite()
  local wrong = x:numel() - finite:sum():item()
  local remark = wrong > 0 and ("%d of %d not finite"):format(wrong, x:numel()) or ""
  if wrong > 0 then x = x[finite] end
  if x:numel() == 0 then return { "", (" "):rep(o.bins), "", "", "", remark } end
  local low, high = x:min():item(), x:max():item()
  local mean = x:mean():item()
  local deviation = (x - mean):square():mean():item() ^ 0.5
  if low == high and remark == "" then remark = ("all %.4g"):format(low) end
  local drawn = low < high and bars(x, low, high, o.bins, letters) or (" "):rep(o.bins)
  return { ("%.3g"):format(low), drawn, ("%.3g"):format(high), ("%.3g"):format(mean),
           ("%.3g"):format(deviation), remark }
end

-- A list of { name, columns }, of each parameter and of its gradient.
local function table_of(module, o, letters)
  local list, with_gradients = {}, false
  for _, value in module:named_parameters() do
    with_gradients = with_gradients or value.grad ~= nil
  end
  for name, value in module:named_parameters() do
    if name:find(o.match) then
      list[#list + 1] = { ("%s %s"):format(name, errors.show_shape(value)),
                          columns_of(value, o, letters) }
      if value.grad then
        list[#list + 1] = { "  gradient", columns_of(value.grad, o, letters) }
      elseif with_gradients then
        list[#list + 1] = { "  " .. (value.requires_grad and "no gradient" or "frozen"), {} }
      end
    end
  end
  return list
end

local function row_text(name, columns, widths)
  local function column(k, side)
    return ("%" .. side .. widths[k] .. "s"):format(columns[k] or "")
  end
  local text = ("%-" .. widths[0] .. "s  %s %s %s  %s  %s  %s"):format(name, column(1, ""),
    columns[2] or (" "):rep(widths[2]), column(3, "-"), column(4, ""), column(5, ""),
    columns[6] or "")
  return (text:gsub(" +$", ""))
end

--- Prints a histogram of each parameter of a module, with its least and greatest value, mean and
--- standard deviation, and below it one of its gradient, where there are gradients (after
--- `backward`, before `zero_grad`). A parameter whose values are all the same, or not finite, and
--- one that has no gradient when others have, say so. Options: `bins`, the letters of a histogram
--- (24), and `match`, a pattern of Lua for names. Returns nothing.
---@param module Module
---@param options table
return function(module, options)
  local o = config.check(options, OPTIONS, "show_histograms")
  if not walk.is_module(module) then
    errors.blame("show_histograms: needs a module: got %s", errors.show(module))
  end
  local _ <close> = c.no_grad()
  local list = table_of(module, o, terminal.look().utf8 and BARS or PLAIN)
  local head = { "min", ("%-" .. o.bins .. "s"):format "histogram", "max", "mean", "std" }
  local widths = { [0] = #walk.class_name(module), 0, o.bins, 0, 0, 0 }
  table.insert(list, 1, { walk.class_name(module), head })
  for _, row in ipairs(list) do
    widths[0] = math.max(widths[0], #row[1])
    for _, k in ipairs { 1, 3, 4, 5 } do widths[k] = math.max(widths[k], #(row[2][k] or "")) end
  end
  local rows = {}
  for i, row in ipairs(list) do rows[i] = row_text(row[1], row[2], widths) end
  if #rows == 1 then rows[2] = "  no parameters" .. (o.match == "" and "" or " match") end
  console.past(print, table.concat(rows, "\n"))
end
