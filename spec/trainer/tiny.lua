-- spec/trainer/tiny.lua: the smallest things that can be trained, for the specs of the loops.
local lt = require "ltrain"

local tiny = {}

--- A line through the origin: one weight, squared error against 2 x.
tiny.Line = lt.Module:extend("Line")

function tiny.Line:init(o)
  self.w = lt.parameter(lt.tensor { 0.5 })
  self.lr = o and o.lr or 0.1
end

function tiny.Line:forward(x)
  local y = x * self.w
  return y
end

function tiny.Line:loss(x)
  local difference = self(x) - x * 2
  return (difference * difference):mean()
end

function tiny.Line:training_step(x) return self:loss(x) end

function tiny.Line:configure_optimizers()
  return lt.optim.SGD(self:parameters(), { lr = self.lr })
end

--- Batches as a plain table: each argument is the list of a batch's numbers.
function tiny.batches(...)
  local list = {}
  for i, values in ipairs { ... } do list[i] = lt.tensor(values) end
  return list
end

--- `count` equal batches.
function tiny.same(count, values)
  local list = {}
  for i = 1, count do list[i] = lt.tensor(values or { 1.0, 2.0 }) end
  return list
end

--- A Trainer that shows, logs and saves nothing; `options` over that.
function tiny.trainer(options)
  local o = {
    logger = false, enable_checkpointing = false, enable_progress_bar = false,
    enable_model_summary = false, max_epochs = 1,
  }
  for name, value in pairs(options or {}) do o[name] = value end
  return lt.Trainer(o)
end

--- A path that does not exist yet, in the folder of temporary files.
function tiny.folder()
  local path = os.tmpname()
  os.remove(path)
  return path
end

--- The message of the error that fn raises.
function tiny.error_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert(not ok, "no error was raised")
  return tostring(message)
end

return tiny
