--- stdlib/apps/views/plot_values.lua: what lt.plot draws, as lists of numbers.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local values_of = {}

local LARGEST <const> = 256 -- rows and columns of a heat map

local function is_list(value) return type(value) == "table" and getmetatable(value) == nil end

--- The numbers of a list or a tensor [N]; `name` says whose.
function values_of.numbers(value, name)
  if c.is_tensor(value) then
    if value.ndim ~= 1 then
      errors.blame("plot: %s must be a tensor [N]: got %s", name, errors.show(value))
    end
    return value:detach():cpu():tolist()
  end
  if not is_list(value) then
    errors.blame("plot: %s must be a list of numbers or a tensor [N]: got %s", name,
      errors.show(value))
  end
  local list = {}
  for i, one in ipairs(value) do
    if c.is_tensor(one) and one:numel() == 1 then one = one:item() end
    if type(one) ~= "number" then
      errors.blame("plot: %s[%d] must be a number: got %s", name, i, errors.show(one))
    end
    list[i] = one
  end
  return list
end

-- The numbers of a series, and where they are: xs (nil: at 1, 2, ...); of points [N, 2] both.
local function series_of(value, name, xs, is_scatter)
  if c.is_tensor(value) and value.ndim == 2 then
    if is_scatter and value.shape[2] == 2 then
      value = value:detach():cpu()
      return value:select(2, 2):tolist(), value:select(2, 1):tolist()
    end
    errors.blame("plot: %s must be a tensor [N]%s: got %s: kind = 'heatmap' draws a matrix", name,
      is_scatter and " or [N, 2]" or "", errors.show(value))
  end
  local numbers = values_of.numbers(value, name)
  if xs and #xs ~= #numbers then
    errors.blame("plot: x has %d values, %s %d", #xs, name, #numbers)
  end
  if not xs then
    xs = {}
    for i = 1, #numbers do xs[i] = i end
  end
  return numbers, xs
end

-- Whether a table is one of series: by name, or a list of lists or tensors.
local function is_collection(values)
  if not is_list(values) then return false end
  local first = values[1]
  if first == nil then return next(values) ~= nil end
  return type(first) == "table" or c.is_tensor(first) and first.ndim > 0
end

--- A list of {label, numbers, places}; o: x, one for all or one for each, and kind.
function values_of.series(values, o)
  local is_scatter, own = o.kind == "scatter", is_collection(o.x) and o.x
  local xs = o.x and not own and values_of.numbers(o.x, "x")
  if not is_collection(values) then
    return { { "", series_of(values, "the series", xs, is_scatter) } }
  end
  local list = {}
  for key, value in tree.pairs(values) do
    local name = errors.show(key)
    local places = own and own[key] ~= nil and values_of.numbers(own[key], "x of " .. name) or xs
    list[#list + 1] = { tostring(key), series_of(value, name, places, is_scatter) }
  end
  return list
end

--- A list of {label =, value =}: of numbers by name, or a list or a tensor [N] with labels.
function values_of.bars(values, labels)
  local list = {}
  if is_list(values) and values[1] == nil and next(values) ~= nil then
    for name, value in tree.pairs(values) do
      if c.is_tensor(value) and value:numel() == 1 then value = value:item() end
      if type(value) ~= "number" then
        errors.blame("plot: %s must be a number: got %s", errors.show(name), errors.show(value))
      end
      list[#list + 1] = { label = tostring(name), value = value }
    end
    return list
  end
  local numbers = values_of.numbers(values, "the bars")
  if labels and #labels ~= #numbers then
    errors.blame("plot: there are %d labels for %d bars", #labels, #numbers)
  end
  for i, value in ipairs(numbers) do
    list[i] = { label = tostring(labels and labels[i] or i), value = value }
  end
  return list
end

-- Names of rows or columns, counted from 0 as classes are.
local function names_of(labels, count, option)
  local list = {}
  if labels and #labels ~= count then
    errors.blame("plot: %s has %d names for %d: got %s", option, #labels, count,
      errors.show(labels))
  end
  for i = 1, count do list[i] = tostring(labels and labels[i] or i - 1) end
  return list
end

--- A matrix [R, C], or a list of lists: {cells =, rows =, columns =}.
function values_of.matrix(values, o)
  local cells
  if c.is_tensor(values) then
    if values.ndim ~= 2 or values:numel() == 0 then
      errors.blame("plot: a heat map needs a matrix [R, C]: got %s", errors.show(values))
    end
    cells = values:detach():cpu():tolist()
  else
    cells = {}
    for i, row in ipairs(is_collection(values) and values or {}) do
      cells[i] = values_of.numbers(row, ("row %d"):format(i))
      if #cells[i] ~= #cells[1] then
        errors.blame("plot: row %d has %d values, row 1 %d", i, #cells[i], #cells[1])
      end
    end
    if not cells[1] or #cells[1] == 0 then
      errors.blame("plot: a heat map needs a matrix [R, C], or a list of its rows: got %s",
        errors.show(values))
    end
  end
  local rows, columns = #cells, #cells[1]
  if math.max(rows, columns) > LARGEST then
    errors.blame("plot: a heat map has at most %d rows and columns: got [%d, %d]: x:show() draws "
      .. "larger ones", LARGEST, rows, columns)
  end
  return { cells = cells, columns = names_of(o.labels, columns, "labels"),
    rows = names_of(o.row_labels or rows == columns and o.labels or nil, rows, "row_labels") }
end

return values_of
