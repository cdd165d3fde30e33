--- stdlib/check/checks/overlap.lua: samples that are trained on and validated with.
local c = require "ltrain.c"
local columns = require "ltrain.check.columns"
local is_float = require "ltrain.core.is_float"

local MOST <const> = 20000 -- rows that are compared
local SMALLEST <const> = 4 -- numbers of a sample that do not agree by chance

-- A data set as the one that it is cut from, and the positions in it (nil: all).
local function root_of(dataset)
  if type(dataset) ~= "table" then return nil end
  local order = rawget(dataset, "_order")
  if order and type(dataset.dataset) == "table" and not dataset.dataset._order then
    return dataset.dataset, order
  end
  return dataset, nil
end

-- How many positions two orders have in common.
local function common(a, b, n)
  if not a and not b then return n end
  if not a or not b then return #(a or b) end
  local seen, count = {}, 0
  for i = 1, #a do seen[a:at(i)] = true end
  for i = 1, #b do count = count + (seen[b:at(i)] and 1 or 0) end
  return count
end

-- How many rows of a float column are rows of another one too.
local function equal_rows(train, val)
  local function key(row) return c.io.crc32(row:contiguous()) end
  local n, m = train.shape[1], val.shape[1]
  if n > MOST or m > MOST or train:numel() // n < SMALLEST then return 0 end
  if train:numel() // n ~= val:numel() // m or train.dtype ~= val.dtype then return 0 end
  local seen, count = {}, 0
  for i = 1, n do seen[key(train[i])] = i end
  for i = 1, m do
    local at = seen[key(val[i])]
    if at and train[at]:equal(val[i]) then count = count + 1 end
  end
  return count
end

local function shared(train, val)
  local a, own = root_of(train.dataset)
  local b, other = root_of(val.dataset)
  if not a or not b then return 0 end
  if a == b then return common(own, other, #val.dataset) end
  local of_train, of_val = columns.of(train), columns.of(val)
  local one, two = of_train and of_train[1], of_val and of_val[1]
  if not one or not two or not is_float(one.tensor.dtype) then return 0 end
  if of_train.map or of_val.map then return 0 end
  return equal_rows(one.tensor, two.tensor)
end

return {
  on_data = function(context, state)
    local train = state.data.train.loader
    if type(train) ~= "table" or not rawget(train, "dataset") then return end
    for _, source in ipairs(state.data.val or {}) do
      local val = source.loader
      -- One loader for both is what the script says; its copy reads the same data set.
      local given = state.fit_args.train ~= nil and state.fit_args.train == state.fit_args.val
      if not given and type(val) == "table" and rawget(val, "dataset") then
        local count = shared(train, val)
        if count > 0 then
          context.report:warn("overlap", columns.line_of(context, "DataLoader"),
            ("%d of the %d validation samples are training samples too: the validation says "
              .. "nothing of new data"):format(count, #val.dataset),
            "cut the data once: lt.data.random_split(dataset, {n, m})")
        end
      end
    end
  end,
}
