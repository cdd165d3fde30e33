-- spec/dist/logged.lua: scripts that log on several ranks, for the specs of logging and metrics.
local trained = require "spec.dist.trained"

-- A module with one weight; `loader(k, size)` over the numbers 0 .. k - 1; `line(t)`, the values
-- of a table in one line; `equal(trainer)`, whether all ranks have the same values; `say`, print
-- on rank 0 alone.
return trained.with [[
lt.seed(1)
local function rank() return lt.dist.rank() end
local function say(...) if rank() == 0 then print(...) end end
local Net = lt.Module:extend("Net")
function Net:init() self.w = lt.parameter(lt.tensor {1.0}) end
function Net:forward(x) return x:to("f32") * self.w end
function Net:loss(batch) return self(batch[1]):mean() end
function Net:training_step(batch) return self:loss(batch) end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.0}) end
local function loader(k, size)
  return lt.data.DataLoader(lt.data.TensorDataset(lt.arange(k)), {batch_size = size or 1})
end
local function text(v)
  if v == nil then return "nil" end
  return v ~= v and "nan" or ("%.9g"):format(v)
end
-- The values of a table, by name, in one line.
local function line(t)
  local names, parts = {}, {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do parts[i] = name .. "=" .. text(t[name]) end
  return table.concat(parts, " ")
end
-- Whether all ranks have the same tables of values.
local function equal(t)
  local all = lt.dist.all_gather {line(t.callback_metrics), line(t.progress_bar_metrics),
    line(t.logged_metrics)}
  for _, one in ipairs(all) do
    for i = 1, 3 do if one[i] ~= all[1][i] then return all[1][i] .. " / " .. one[i] end end
  end
  return true
end
]]
