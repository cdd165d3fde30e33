-- spec/api/torch_spec.lua: the public names of PyTorch and torchmetrics with their parameters
-- (spec/api/signatures.txt), beside ours. What they have is here under the same name, or on the
-- list stdlib/core/torch_names.lua, which errors read too, or in spec/api/internal_names.lua;
-- parameters have their names and places, or a reason in spec/api/parameters.lua.
local compare = require "spec.api.compare"
local exports = require "ltrain.core.exports"
local foreign_names = require "ltrain.core.foreign_names"
local is_internal = require "spec.api.internal_names"
local lt = require "ltrain"
local parameters = require "spec.api.parameters"
local public = require "spec.api.public"
local signatures = require "spec.api.signatures"
local takes = require "spec.api.takes"
local torch_names = require "ltrain.core.torch_names"
local tree = require "ltrain.core.tree"

local methods <const>, x <const> = public.methods(), lt.ones(2, 2)

-- Each recorded room: what errors call ours, and where its names are looked up.
local ROOMS <const> = {
  ["torch"] = { "lt", lt }, ["torch.nn"] = { "nn", lt.nn },
  ["torch.Tensor"] = { "tensor", x },
  ["torch.nn.functional"] = { "nn.functional", lt.nn.functional },
  ["torch.nn.init"] = { "nn.init", lt.nn.init },
  ["torch.nn.utils"] = { "nn.utils", lt.nn.utils, lt.nn },
  ["torch.optim"] = { "optim", lt.optim },
  ["torch.optim.lr_scheduler"] = { "optim", lt.optim },
  ["torch.optim.swa_utils"] = { "optim", lt.optim },
  ["torch.distributions"] = { "distributions", lt.distributions },
  ["torch.linalg"] = { "linalg", lt.linalg }, ["torch.fft"] = { "fft", lt.fft },
  ["torch.special"] = { "special", lt.special },
  ["torch.autograd"] = { "autograd", lt.autograd, lt },
  ["torch.autograd.functional"] = { "autograd.functional", lt.autograd.functional },
  ["torch.func"] = { "func", lt.func }, ["torch.utils.data"] = { "data", lt.data },
  ["torch.nn.Module"] = { "Module", lt.Module },
  ["torch.optim.Optimizer"] = { "Optimizer", lt.Optimizer },
  ["torch.distributions.Distribution"] = { "Distribution", lt.distributions.Distribution },
  ["torchmetrics"] = { "metrics", lt.metrics }, ["torchmetrics.Metric"] = { "Metric", lt.Metric },
}
for name in ([[aggregation classification clustering detection image nominal regression retrieval
  segmentation text wrappers]]):gmatch "%a+" do
  ROOMS["torchmetrics." .. name] = ROOMS.torchmetrics
end

local FIELDS <const> = { "shape", "dtype", "device", "is_cuda", "is_meta", "grad",
  "requires_grad", "is_leaf", "ndim" }

-- The names of a room, a set; asking a room for a name that it lacks is an error that takes its
-- time.
local names_of = setmetatable({}, { __index = function(self, room)
  local names = {}
  for key, value in pairs(room ~= x and room or {}) do
    names[type(key) == "string" and key or value] = true
  end
  for key in pairs(room == lt and exports or room == x and methods or {}) do names[key] = true end
  for _, key in ipairs(room == x and FIELDS or {}) do names[key] = true end
  self[room] = names
  return names
end })

-- What a room has, or a class, one of a class above too; nil.
local function get(room, name)
  local is_class = type(room) == "table" and rawget(room, "__name") ~= nil
  if not is_class and not names_of[room][name] then return nil end
  local value = room[name]
  return value == nil and names_of[room][name] and true or value
end

-- The same as a list.
local words_of = setmetatable({}, { __index = function(self, room)
  self[room] = tree.keys(names_of[room])
  return self[room]
end })

-- What a recorded name is here, and whether as a method of tensors; nil: it is not here.
local function find(row)
  local room = ROOMS[row.room]
  if row.room == "torch.Tensor" and methods[row.name] and exports[row.name] then
    return lt[row.name], true -- behind what loads it
  end
  for k = 2, #room do
    local value = get(room[k], row.name)
    if value ~= nil then return value, row.room == "torch.Tensor" and methods[row.name] ~= nil end
  end
  if row.room == "torch" then return methods[row.name] end
end

local all <const> = {}
for _, row in ipairs(signatures.read "torch") do
  row.full = row.room .. "." .. row.name
  if ROOMS[row.room] then all[#all + 1] = row end
end

describe("a name of PyTorch or torchmetrics", function()
  it("is here, or errors say what to write in place of it, or why it is not", function()
    local missing = {}
    for _, row in ipairs(all) do
      local room = ROOMS[row.room][1]
      local words = words_of[ROOMS[row.room][2]]
      local said = foreign_names.of(room, row.name, words) or foreign_names.rows(room)["?"]
      if find(row) == nil and not said and not is_internal(row) then
        missing[#missing + 1] = row.full
      end
    end
    assert.same({}, missing)
  end)

  it("that is here is not on the list", function()
    local stale, listed = {}, {}
    for room, text in pairs(torch_names) do
      listed[room] = {}
      for names in ("\n" .. text:gsub("\n  ", " ")):gmatch "\n([^\n=:]+)" do
        for name in names:gmatch "%S+" do listed[room][name] = true end
      end
    end
    for _, row in ipairs(all) do
      local room, has = ROOMS[row.room][1], get(ROOMS[row.room][2], row.name)
      local both = (room == "lt" or room == "tensor") and listed.both[row.name]
      if has ~= nil and (both or listed[room] and listed[room][row.name]) then
        stale[#stale + 1] = row.full
      end
    end
    assert.same({}, stale)
  end)

  it("is answered with lines whose names are here", function()
    local wrong = {}
    for room, text in pairs(torch_names) do
      for path in text:gsub("\n  ", " "):gmatch "%f[%w]lt%.([%w_.]+)%f[^%w_]" do
        local value = lt
        for part in path:gmatch "[%w_]+" do
          value = type(value) == "table" and get(value, part) or nil
        end
        if value == nil then wrong[#wrong + 1] = room .. ": lt." .. path end
      end
      for name in text:gmatch "%f[%w][xyw]:([%w_]+)%f[({\" ]" do
        if not methods[name] then wrong[#wrong + 1] = room .. ": x:" .. name end
      end
    end
    assert.same({}, wrong)
  end)
end)

describe("the parameters of PyTorch and torchmetrics", function()
  it("have their names and places here, or a reason", function()
    local found, used = {}, {}
    for _, row in ipairs(all) do
      local value, is_method = find(row)
      local taken = value ~= nil and row.parameters and takes.of(value, row.name)
      if not taken and type(value) == "function" and row.parameters and row.parameters[1] then
        found[#found + 1] = row.full .. ": does not say what it takes"
      end
      local is_class = type(value) == "table"
      for _, one in ipairs(taken and compare(row.parameters, taken, is_method and 1 or 0,
        is_class) or {}) do
        local key = parameters.reason(row.full, one.name, one.by_name)
        if key then
          used[key] = true
        else
          found[#found + 1] = ("%s: %s%s"):format(row.full, one.name,
            one.by_name and ", by name alone" or "")
        end
      end
    end
    for key in pairs(parameters.keys) do
      if not used[key] then found[#found + 1] = key .. ": needs no reason" end
    end
    table.sort(found)
    assert.same({}, found)
  end)
end)
