--- stdlib/callbacks/progress_line.lua: the progress bar's text, in as many columns as there are.
--
-- Where it is too long the bar itself gives way first, then the rate, then the times, then whole
-- metrics from the end. A number is never cut.
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local progress_line = {}

local SHORTEST_BAR <const> = 3
local INDENT <const>, MORE <const> = "  ", "..."

-- Columns that a text takes: a character each.
local function columns(text)
  return utf8.len(text) or #text
end

local function time_text(seconds)
  if seconds ~= seconds or seconds == math.huge then return "--:--" end
  seconds = math.floor(seconds + 0.5)
  if seconds >= 3600 then
    return ("%d:%02d:%02d"):format(seconds // 3600, seconds // 60 % 60, seconds % 60)
  end
  return ("%02d:%02d"):format(seconds // 60, seconds % 60)
end

local function value_text(value)
  if math.type(value) ~= "float" then return errors.printable(tostring(value)) end
  return ("%.4g"):format(value)
end

--- "name=value" of each metric, in alphabetical order.
function progress_line.metrics(values)
  local parts = {}
  for name, value in tree.pairs(values) do
    parts[#parts + 1] = ("%s=%s"):format(errors.printable(name), value_text(value))
  end
  return parts
end

-- What follows the bar, from the longest form to the shortest.
local function progress_forms(task)
  local has_total = task.total ~= math.huge
  local count = has_total and ("%d/%d"):format(task.done, task.total) or ("%d"):format(task.done)
  local times, done = time_text(task.elapsed), task.done - task.skipped
  if has_total then
    local left = done > 0 and task.elapsed / done * (task.total - task.done) or math.huge
    times = times .. "<" .. time_text(left)
  end
  local forms = { ("%s [%s]"):format(count, times), count }
  if task.elapsed > 0 then
    table.insert(forms, 1, ("%s [%s, %.4g it/s]"):format(count, times, done / task.elapsed))
  end
  return forms
end

local function bar_text(task, length)
  local part = task.total > 0 and math.min(task.done / task.total, 1) or 1
  local full = math.floor(part * length + 0.5)
  return ("|%s%s|"):format(("#"):rep(full), ("."):rep(length - full))
end

local function joined(...)
  local parts = {}
  for i = 1, select("#", ...) do
    local part = select(i, ...)
    if part ~= "" then parts[#parts + 1] = part end
  end
  return table.concat(parts, " ")
end

-- Title, bar, progress and `tail`, as `width` lets them be; nil when even the shortest is too long.
local function fit(task, tail, width)
  local forms = progress_forms(task)
  local bare = joined(task.title, forms[1], tail)
  local bar_width = math.min(task.bar, width - columns(bare) - 3)
  if task.total ~= math.huge and (bar_width == task.bar or bar_width >= SHORTEST_BAR) then
    return joined(task.title, bar_text(task, bar_width), forms[1], tail)
  end
  for _, form in ipairs(forms) do
    local text = joined(task.title, form, tail)
    if columns(text) <= width then return text end
  end
end

--- One line of at most `width` columns: metrics that do not fit are left out. `task` has title,
--- done, total (math.huge: unknown), skipped (done before it began), elapsed seconds and bar, the
--- characters of the bar.
function progress_line.text(task, metrics, width)
  for n = #metrics, 1, -1 do
    local tail = table.concat(metrics, " ", 1, n)
    if n < #metrics then tail = joined(tail, MORE) end
    local text = fit(task, tail, width)
    if text then return text end
  end
  local forms = progress_forms(task)
  local shortest = forms[#forms]
  return fit(task, "", width) or columns(shortest) <= width and shortest or ""
end

--- Lines of at most `width` columns: `title`, then the parts, which are not cut.
function progress_line.wrap(title, parts, width)
  local lines, line = {}, title
  for _, part in ipairs(parts) do
    if columns(line) + 1 + columns(part) > width then
      lines[#lines + 1] = line
      line = INDENT .. part
    else
      line = line .. " " .. part
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

--- All of it, in as many lines as it takes.
function progress_line.whole(task, metrics, width)
  return fit(task, table.concat(metrics, " "), width)
    or progress_line.wrap(progress_line.text(task, {}, width), metrics, width)
end

return progress_line
