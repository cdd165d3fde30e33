-- stdlib/distributions/constraints.lua: which parameters and values a distribution takes.
--
-- A constraint is { text, holds }: holds(x, distribution) is a mask. On the cpu a violation is an
-- error at once. On an asynchronous device a flag of each check is on its way to the host, which
-- polls it at later checks and waits only for one that is AHEAD checks old.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local AHEAD <const> = 16

local constraints = {
  real = { "must not be NaN", function(x) return x:eq(x) end },
  positive = { "must be greater than 0", function(x) return x:gt(0) end },
  non_negative = { "must be at least 0", function(x) return x:ge(0) end },
  unit_interval = { "must be in 0..1",
    function(x) return x:ge(0):logical_and(x:le(1)) end },
  half_open_unit_interval = { "must be in 0..1, without 1",
    function(x) return x:ge(0):logical_and(x:lt(1)) end },
  tanh_range = { "must be in -1..1", function(x) return x:abs():le(1) end },
  count = { "must be an integer of at least 0",
    function(x) return x:ge(0):logical_and(x:eq(x:floor())) end },
  up_to_total = { "must be one of 0..total_count", function(x, d)
    return x:ge(0):logical_and(x:le(d.total_count)):logical_and(x:eq(x:floor()))
  end },
  simplex = { "must be at least 0 and sum to 1", function(x)
    return x:ge(0):all(-1):logical_and((x:sum(-1) - 1):abs():lt(1e-6))
  end },
  one_hot = { "must be a vector of 0 and one 1", function(x)
    return x:eq(0):logical_or(x:eq(1)):all(-1):logical_and(x:sum(-1):eq(1))
  end },
  boolean = { "must be 0 or 1", function(x) return x:eq(0):logical_or(x:eq(1)) end },
  above_low = { "must be above low", function(x, d) return x:gt(d.low) end },
  interval = { "must be in low..high",
    function(x, d) return x:ge(d.low):logical_and(x:le(d.high)) end },
  category = { "must be one of 0..K - 1", function(x, d)
    local is_known = x:ge(0):logical_and(x:lt(d.probs.shape[d.probs.ndim]))
    return is_known:logical_and(x:eq(x:floor()))
  end },
  weights = { "must be finite, at least 0, and not all 0", function(x)
    local sum = x:sum(-1, true)
    return x:ge(0):logical_and(sum:gt(0)):logical_and(sum:lt(math.huge))
  end },
  log_weights = { "must be below infinity, and not all -infinity",
    function(x) local sum = x:logsumexp(-1, true) return sum:abs():lt(math.huge) end },
  covariance = { "must be symmetric and positive definite", function(x, d)
    local is_even = (x - x:transpose(-2, -1)):abs():le(1e-6):all()
    return is_even:logical_and(d.scale_tril:diagonal(0, -2, -1):gt(0):all())
  end },
  lower_cholesky = { "must be a lower triangle with a diagonal above 0", function(x)
    return x:triu(1):eq(0):all():logical_and(x:diagonal(0, -2, -1):gt(0):all())
  end },
}

-- Checks on their way, the oldest first: { flag, text }; flags to use again.
local pending, spare = {}, {}

-- Raises what the checks that have arrived have found.
local function read_pending()
  while pending[1] do
    local flag = pending[1][1]
    local is_violated
    if #pending > AHEAD then is_violated = flag:read() else is_violated = flag:poll() end
    if is_violated == nil then return end
    spare[#spare + 1] = flag
    local text = table.remove(pending, 1)[2]
    if is_violated then errors.blame("%s", text) end
  end
end

-- ": got -1.0", the first element that violates, if the mask is of single elements.
local function first_of(x, holds)
  if holds.ndim ~= x.ndim or holds:numel() ~= x:numel() then return "" end
  return (": got %s"):format(errors.show(x:masked_select(holds:logical_not())[1]:item()))
end

--- Raises "where: name must be ..." unless the constraint holds of all of x, a tensor.
function constraints.check(where, name, x, constraint, distribution)
  local _ <close> = c.no_grad()
  x = x:detach()
  local holds = constraint[2](x, distribution)
  local text = ("%s: %s %s"):format(where, name, constraint[1])
  if tostring(x.device) == "cpu" then
    if not holds:all():item() then errors.blame("%s%s", text, first_of(x, holds)) end
    return
  end
  read_pending()
  local flag = table.remove(spare) or c.runtime.readback()
  flag:set(holds:all():logical_not())
  pending[#pending + 1] = { flag, ("%s (of %s)"):format(text, (errors.where():gsub(": $", ""))) }
end

return constraints
