--- stdlib/apps/check/checks/causality.lua: checks that a language model does not see the tokens
--- that it predicts.
--
-- Its targets are its inputs, one position on. With another token at the last position the logits
-- of the positions before must be the same.
local Experiment = require "ltrain.apps.check.experiment"
local batch_samples = require "ltrain.apps.check.batch_samples"
local c = require "ltrain.c"
local compare = require "ltrain.apps.check.compare"
local is_float = require "ltrain.core.is_float"

local SHORTEST <const> = 4 -- positions

-- The inputs of a batch whose targets are the tokens that follow: the leaf, and T.
local function inputs_of(context)
  local leaves = batch_samples.leaves(context.batch)
  for _, x in ipairs(leaves) do
    local shape = x.value.shape
    local t = #shape == 2 and not is_float(x.value.dtype) and shape[2] or 0
    for _, y in ipairs(t >= SHORTEST and leaves or {}) do
      local other = y.value.shape
      if y ~= x and y.value.dtype == x.value.dtype and #other == 2 and other[1] == shape[1]
        and other[2] == t
        and x.value:narrow(2, 2, t - 1):equal(y.value:narrow(2, 1, t - 1)) then
        return x, t
      end
    end
  end
end

-- The same tokens, but for the last of each sample; nil where all are alike.
local function with_other_end(tokens, t)
  local last, changed = tokens:narrow(2, t, 1), nil
  for k = 1, t - 1 do
    local candidate = tokens:narrow(2, k, 1)
    if candidate:ne(last):all():item() then
      changed = c.cat({ tokens:narrow(2, 1, t - 1), candidate }, 2)
      break
    end
  end
  return changed
end

-- The logits in front of the last position, from a call of cross_entropy; nil where they do not
-- stand by position.
local function earlier(call, n, t)
  local logits = call.inputs[1]
  local shape = logits.shape
  if #shape == 3 and shape[1] == n and shape[3] == t then return logits:narrow(3, 1, t - 1) end
  if #shape == 2 and shape[1] == n * t then
    return logits:reshape(n, t, shape[2]):narrow(2, 1, t - 1)
  end
end

local function loss_call(found)
  for _, call in ipairs(found.calls) do
    if call.op == "cross_entropy" then return call end
  end
end

return {
  before = function(context, state)
    if not context.first or context.broken or context.varies then return end
    local x, t = inputs_of(context)
    local given = x and with_other_end(x.value, t)
    local call = given and loss_call(context.first)
    local n = x and x.value.shape[1]
    local plain = call and earlier(call, n, t)
    if not plain then return end
    local ok, found = Experiment.try(Experiment.watch, state, batch_samples.with(context.batch,
      x.keys, given), context.draws)
    local other = ok and loss_call(found)
    local _ <close> = c.no_grad()
    local changed = other and earlier(other, n, t)
    if changed and compare.same(plain, changed) == false then
      context.report:error("future", call.line, ("the logits for positions 1..%d change with the "
        .. "token at position %d: the model sees the tokens that it is to predict"):format(t - 1,
        t), "give the attention a causal mask (is_causal = true); read sequences forward only")
    end
  end,
}
