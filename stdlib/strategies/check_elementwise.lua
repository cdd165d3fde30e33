--- stdlib/strategies/check_elementwise.lua: refuses optimizers that cannot step parts of
--- parameters: those that compute with whole ones.
local Optimizer = require "ltrain.optim.Optimizer"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

-- What the class that defines `update` says of elementwise, so that parts can be stepped; a
-- subclass without its own `update` inherits that. nil: nothing.
local function elementwise_of(optimizer)
  local found = optimizer -- which may have an update of its own
  while found and found ~= Optimizer do
    local said = rawget(found, "elementwise")
    if said ~= nil or rawget(found, "update") then return said end
    found = found == optimizer and class.of(optimizer) or rawget(found, "super")
  end
end

--- `who`: the strategy, of which a rank steps `what` of the parameters ("slices").
return function(optimizer, who, what)
  local name, said = errors.show(optimizer), nil
  if class.is_a(optimizer, Optimizer) then said = elementwise_of(optimizer) end
  if said == false then
    errors.blame("%s: %s computes with whole parameters, and a rank steps %s of them: take AdamW "
      .. "or another optimizer that treats each element independently, or write strategy = 'ddp'",
      who, name, what)
  elseif not class.is_a(optimizer, Optimizer) or optimizer.step ~= Optimizer.step then
    errors.blame("%s: %s overrides step, which updates whole parameters: extend lt.optim.Optimizer "
      .. "and define update, or write strategy = 'ddp'", who, name)
  elseif not said then
    errors.blame("%s: %s: a rank steps %s of the parameters: set %s.elementwise = true if update "
      .. "treats each element independently, else write strategy = 'ddp'", who, name, what,
      rawget(optimizer, "update") and "optimizer" or class.of(optimizer).__name)
  end
end
