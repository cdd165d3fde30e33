-- stdlib/core/einsum.lua: lt.einsum: sums of products in Einstein notation, as a chain of pairwise
-- matrix products.
--
-- Each pair of operands becomes one bmm: dims that both have and that live on are the batch, those
-- that only the two have are summed by the product, and what is one operand's alone is a side.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local function shape_text(shape) return "[" .. table.concat(shape, ", ") .. "]" end

local function blame(...) errors.blame("einsum: " .. ..., select(2, ...)) end

-- "ij" and its dims; those of an ellipsis are named 1, 2, ... from the last one.
local function labels_of(text, x, equation)
  local before, after = text:match "^(%a*)%.%.%.(%a*)$"
  local list = {}
  if not before then
    if not text:match "^%a*$" then blame("cannot read '%s' in '%s'", text, equation) end
    before, after = text, ""
  end
  for label in before:gmatch "%a" do list[#list + 1] = label end
  if text:find(".", 1, true) then
    for k = x.ndim - #before - #after, 1, -1 do list[#list + 1] = tostring(k) end
  end
  for label in after:gmatch "%a" do list[#list + 1] = label end
  if #list ~= x.ndim then
    blame("'%s' names %d dims of %s", text, #list, shape_text(x.shape))
  end
  return list
end

local function place_of(list, label)
  for k, other in ipairs(list) do
    if other == label then return k end
  end
end

-- A label twice in one operand: its diagonal.
local function without_twins(x, list)
  local k = 1
  while k <= #list do
    local twin = place_of({table.unpack(list, k + 1)}, list[k])
    if twin then
      local label = table.remove(list, k + twin)
      table.remove(list, k)
      x = x:diagonal(0, k, k + twin)
      list[#list + 1] = label
    else
      k = k + 1
    end
  end
  return x, list
end

-- x summed over what nobody asks for any more.
local function reduced(x, list, wanted)
  local dims, left = {}, {}
  for k, label in ipairs(list) do
    if wanted[label] then left[#left + 1] = label else dims[#dims + 1] = k end
  end
  if #dims > 0 then x = x:sum(dims) end
  return x, left
end

-- x with its dims in the order of `order`; those that it lacks have size 1.
local function arranged(x, list, order)
  local dims, shape = {}, {}
  for k, label in ipairs(order) do
    local place = place_of(list, label)
    if place then dims[#dims + 1] = place end
    shape[k] = place and x.shape[place] or 1
  end
  if #dims > 1 then x = x:permute(dims) end
  return x:reshape(shape)
end

local function size_of(shape, from, to)
  local n = 1
  for k = from, to do n = n * shape[k] end
  return n
end

-- Two operands as one: batch, sides and what is summed, each joined into one dim.
local function joined(a, la, b, lb, wanted)
  local batch, left, right, summed = {}, {}, {}, {}
  for _, label in ipairs(la) do
    local both = place_of(lb, label)
    local place = both and (wanted[label] and batch or summed) or left
    place[#place + 1] = label
  end
  for _, label in ipairs(lb) do
    if not place_of(la, label) then right[#right + 1] = label end
  end
  local function with(...)
    local order = {}
    for _, part in ipairs{...} do table.move(part, 1, #part, #order + 1, order) end
    return order
  end
  local order_a, order_b = with(batch, left, summed), with(batch, summed, right)
  local x, y = arranged(a, la, order_a), arranged(b, lb, order_b)
  local sizes, n = {}, #batch
  local function both_sizes(k, other) -- one of them may be 1 by broadcasting
    local p, q = x.shape[k], y.shape[other]
    return p == 1 and q or p
  end
  for k = 1, n do sizes[k] = both_sizes(k, k) end
  for k = 1, #summed do sizes[n + #left + k] = both_sizes(n + #left + k, n + k) end
  local shape_a, shape_b, result = {}, {}, {}
  for k = 1, n do shape_a[k], shape_b[k], result[k] = sizes[k], sizes[k], sizes[k] end
  for k = 1, #left do shape_a[n + k] = x.shape[n + k] end
  for k = 1, #summed do
    shape_a[n + #left + k], shape_b[n + k] = sizes[n + #left + k], sizes[n + #left + k]
  end
  for k = 1, #right do shape_b[n + #summed + k] = y.shape[n + #summed + k] end
  for k = 1, #left do result[n + k] = shape_a[n + k] end
  for k = 1, #right do result[n + #left + k] = shape_b[n + #summed + k] end
  local rows, depth = size_of(shape_a, n + 1, n + #left), size_of(shape_b, n + 1, n + #summed)
  local columns, count = size_of(shape_b, n + #summed + 1, #shape_b), size_of(shape_a, 1, n)
  x = x:expand(shape_a):reshape{count, rows, depth}
  y = y:expand(shape_b):reshape{count, depth, columns}
  return x:bmm(y):reshape(result), with(batch, left, right)
end

local function parse(equation, tensors)
  local text = equation:gsub("%s", "")
  local left, right = text:match "^(.-)%->(.*)$"
  left = left or text
  local lists, count, sizes = {}, {}, {}
  for part in (left .. ","):gmatch "(.-)," do
    local x = tensors[#lists + 1]
    if not x then blame("'%s' names more operands than the %d given", equation, #tensors) end
    local list = labels_of(part, x, equation)
    for k, label in ipairs(list) do
      count[label] = (count[label] or 0) + 1
      if sizes[label] and sizes[label] ~= x.shape[k] and sizes[label] > 1 and x.shape[k] > 1 then
        blame("'%s' is %d in one operand and %d in %s, operand %d of '%s'", label, sizes[label],
          x.shape[k], shape_text(x.shape), #lists + 1, equation)
      end
      sizes[label] = math.max(sizes[label] or 1, x.shape[k])
    end
    lists[#lists + 1] = list
  end
  if #lists ~= #tensors then
    blame("'%s' names %d operands, %d are given", equation, #lists, #tensors)
  end
  local spread, out = {}, {}
  for label in next, count do
    if tonumber(label) then spread[#spread + 1] = label
    elseif not right and count[label] == 1 then out[#out + 1] = label end
  end
  table.sort(spread, function(a, b) return tonumber(a) > tonumber(b) end)
  table.sort(out)
  if not right then
    table.move(out, 1, #out, #spread + 1, spread)
    return lists, spread
  end
  out = {}
  for before, dots in right:gmatch "(%a*)(%.*)" do
    for label in before:gmatch "%a" do out[#out + 1] = label end
    if dots == "..." then table.move(spread, 1, #spread, #out + 1, out)
    elseif dots ~= "" then blame("cannot read '%s'", equation) end
  end
  for k, label in ipairs(out) do
    if not count[label] then blame("'%s' is in no operand of '%s'", label, equation) end
    if place_of({table.unpack(out, k + 1)}, label) then
      blame("'%s' occurs twice in the result of '%s'", label, equation)
    end
  end
  return lists, out
end

--- The sum of products that `equation` describes, as "bik,bkj->bij" or "ii"; "..." stands for dims
--- that broadcast.
---@param equation string
---@param tensors table a list of tensors; or the tensors themselves, one after the other
return function(equation, tensors, ...)
  if c.is_tensor(tensors) then tensors = { tensors, ... } end
  if type(equation) ~= "string" or type(tensors) ~= "table" or #tensors == 0 then
    blame("needs an equation and a table of tensors: lt.einsum('ij,jk->ik', {a, b})")
  end
  local lists, out = parse(equation, tensors)
  local function wanted_beyond(first)
    local wanted = {}
    for _, label in ipairs(out) do wanted[label] = true end
    for k = first, #lists do
      for _, label in ipairs(lists[k]) do wanted[label] = true end
    end
    return wanted
  end
  local x, list = without_twins(tensors[1], {table.unpack(lists[1])})
  x, list = reduced(x, list, wanted_beyond(2))
  for k = 2, #lists do
    local y, other = without_twins(tensors[k], {table.unpack(lists[k])})
    local own = wanted_beyond(k + 1)
    for _, label in ipairs(list) do own[label] = true end
    y, other = reduced(y, other, own)
    x, list = joined(x, list, y, other, wanted_beyond(k + 1))
    x, list = reduced(x, list, wanted_beyond(k + 1))
  end
  local order = {}
  for k, label in ipairs(out) do order[k] = place_of(list, label) end
  if #order > 1 then x = x:permute(order) end
  return x
end
