-- stdlib/onnx/Sizes.lua: sizes that depend on named dims, as values of a graph.
--
-- A size is known by what it is in each run (traces.lua), {8, 9, 10, 8, 8}. One that is not the
-- same in all of them is computed from dims of values that are in the graph already.

local Sizes = {}
Sizes.__index = Sizes

--- Of a graph; `runs`: those of traces.lua.
function Sizes.new(graph, runs)
  return setmetatable({ graph = graph, runs = runs, list = {}, by_key = {} }, Sizes)
end

--- What fn(run) is in each run.
function Sizes:tuple(fn)
  local tuple = {}
  for r, run in ipairs(self.runs) do tuple[r] = fn(run, r) end
  return tuple
end

--- The first run in which a value is another; nil where it is the same in all.
function Sizes.changed(tuple)
  for r = 2, #tuple do
    if tuple[r] ~= tuple[1] then return r end
  end
end

-- The dims of value `name` that change; shapes[r]: its shape in run r.
local function entries_of(name, shapes, named)
  local entries = {}
  for dim = 1, #shapes[1] do
    local tuple = {}
    for r, shape in ipairs(shapes) do tuple[r] = shape[dim] end
    if Sizes.changed(tuple) then
      entries[#entries + 1] = { of = name, dim = dim, tuple = tuple, key = table.concat(tuple, " "),
                                name = named and named[dim] }
    end
  end
  return entries
end

-- Whether a size is another in each run of the names that it depends on. One that is not, such as a
-- number of windows, is an expression of many others by chance.
local function is_telling(tuple)
  for r = 2, #tuple, 2 do -- two runs for each name
    local first <const>, near, far = tuple[1], tuple[r], tuple[r + 1]
    if (near ~= first or far ~= first) and (near == first or far == first or near == far) then
      return false
    end
  end
  return true
end

--- The dims of value `name` are known from here on; shapes[r]: its shape in run r. `named`: names
--- of dims, of inputs of the file.
function Sizes:note(name, shapes, named)
  for _, entry in ipairs(entries_of(name, shapes, named)) do
    if not self.by_key[entry.key] then
      self.by_key[entry.key] = entry
      if is_telling(entry.tuple) then self.list[#self.list + 1] = entry end
    end
  end
end

--- The name of the input's dim that has this size; nil where none has.
function Sizes:dim_name(tuple)
  local entry <const> = self.by_key[table.concat(tuple, " ")]
  return entry and entry.name
end

-- A known dim as a vector of one.
local function value_of(self, entry)
  entry.value = entry.value
    or self.graph:add("Shape", { entry.of }, { start = entry.dim - 1, ["end"] = entry.dim })
  return entry.value
end

-- a and b with tuple = a * known + b in all runs; nil where there are none.
local function line(tuple, known)
  local r <const> = Sizes.changed(known)
  local rise <const>, run = tuple[r] - tuple[1], known[r] - known[1]
  if rise == 0 or rise % run ~= 0 then return nil end
  local a <const> = rise // run
  local b <const> = tuple[1] - a * known[1]
  for k, size in ipairs(tuple) do
    if size ~= a * known[k] + b then return nil end
  end
  return a, b
end

-- The size from one of the dims: a multiple of it, a part, or what a constant is added to.
local function from_one(self, tuple, entries)
  local g <const>, sum = self.graph, nil
  for _, entry in ipairs(entries) do
    local a <const>, b = line(tuple, entry.tuple)
    if b == 0 then return g:add("Mul", { value_of(self, entry), g:constant { a } }) end
    local part <const>, rest = line(entry.tuple, tuple)
    if rest == 0 then return g:add("Div", { value_of(self, entry), g:constant { part } }) end
    sum = sum or a and is_telling(entry.tuple) and { entry, a, b }
  end
  if not sum then return nil end
  local value = value_of(self, sum[1])
  if sum[2] ~= 1 then value = g:add("Mul", { value, g:constant { sum[2] } }) end
  return g:add("Add", { value, g:constant { sum[3] } })
end

-- What is left of the size when it is divided by a known dim; nil where it is not a multiple.
local function quotient(tuple, known)
  local rest = {}
  for r, size in ipairs(tuple) do
    if known[r] == 0 or size % known[r] ~= 0 then return nil end
    rest[r] = size // known[r]
  end
  return rest
end

-- The size as one of the dims, made from one, or a product of several.
local function product(self, tuple, entries)
  local key <const> = table.concat(tuple, " ")
  for _, entry in ipairs(entries) do
    if entry.key == key then return value_of(self, entry) end
  end
  local value <const> = from_one(self, tuple, entries)
  if value then return value end
  for _, entry in ipairs(entries) do
    local rest <const> = quotient(tuple, entry.tuple)
    local other <const> = rest and Sizes.changed(rest) and product(self, rest, entries)
    if other then return self.graph:add("Mul", { value_of(self, entry), other }) end
  end
end

--- The size, of a call, as a vector of one; nil where no dims are known that it is made of. Those
--- of the call's inputs come first.
function Sizes:value(tuple, call)
  local g <const> = self.graph
  if not Sizes.changed(tuple) then return g:constant { tuple[1] } end
  local own = {}
  for k = 1, #call.inputs do
    local name <const> = g:known_name(call.inputs[k])
    local shapes <const> = self:tuple(function(_, r)
      return name and call.runs[r].inputs[k].shape or {}
    end)
    for _, entry in ipairs(entries_of(name, shapes)) do own[#own + 1] = entry end
  end
  local more = {}
  for r, size in ipairs(tuple) do more[r] = size + 1 end -- what a variance is divided by
  local known <const> = self.by_key[table.concat(tuple, " ")]
  local all <const> = table.move(self.list, 1, #self.list, #own + 1, { table.unpack(own) })
  local value <const> = product(self, tuple, own) or known and value_of(self, known)
    or product(self, tuple, all)
  local whole <const> = not value and product(self, more, all)
  return value or whole and g:add("Sub", { whole, g:constant { 1 } }) or nil
end

return Sizes
