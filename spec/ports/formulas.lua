-- spec/ports/formulas.lua: parameters, inputs and targets by formulas, as formulas.py makes them,
-- and the loops that tutorials have.
local lt = require "ltrain"

local formulas = {}

-- 0, 1, 2, ... as many as `shape` has elements.
local function count(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return lt.arange(n)
end

--- Numbers from -1 to 1, without a pattern that a layer could use.
function formulas.wave(shape, place)
  local i = count(shape)
  return ((i * i % 1009):to "f64" * 0.37 + (place or 0)):sin():to "f32":reshape(shape)
end

--- Ids from 0 to n - 1.
function formulas.ids(shape, n, place)
  local i = count(shape)
  return ((i * i * 3 + i * 7 + (place or 0)) % 1009 % n):reshape(shape)
end

--- Weights of two dims and more by fan-in, other weights around 1, all else around 0.
function formulas.fill(module)
  local names, by_name = {}, {}
  for name, p in module:named_parameters() do
    names[#names + 1], by_name[name] = name, p
  end
  table.sort(names)
  local _ <close> = lt.no_grad()
  for k, name in ipairs(names) do
    local p = by_name[name]
    local values = formulas.wave(p.shape, k)
    if p.ndim > 1 then
      p:copy_(values * math.sqrt(2 * p:size(1) / p:numel()))
    else
      p:copy_(values * 0.1 + (name:find "weight$" and 1 or 0))
    end
  end
  return module
end

--- The losses of 20 steps; `loss_of` gets the number of the step, from 1.
function formulas.steps(optimizer, loss_of)
  local losses = {}
  for step = 1, 20 do
    optimizer:zero_grad()
    local loss = loss_of(step)
    loss:backward()
    optimizer:step()
    losses[step] = loss:item()
  end
  return losses
end

--- The losses of 20 steps of a Trainer: what training_step returns for these batches.
function formulas.fit(module, batches, options)
  local losses, recorder = {}, lt.Callback:extend("Recorder")()
  function recorder.on_train_batch_end(_, _, _, outputs)
    losses[#losses + 1] = outputs:item()
  end
  local o = {max_steps = 20, max_epochs = -1, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false, callbacks = {recorder}}
  for key, value in pairs(options or {}) do o[key] = value end
  lt.Trainer(o):fit(module, batches)
  return losses
end

--- The losses of 20 steps of SGD on one batch of images of n classes.
function formulas.classify(net, shape, n, options)
  local x, y = formulas.wave(shape), formulas.ids({shape[1]}, n)
  local optimizer = lt.optim.SGD(formulas.fill(net):parameters(), options)
  return formulas.steps(optimizer, function() return lt.cross_entropy(net(x), y) end)
end

--- Discounted sums of the rewards that follow, normalized.
function formulas.returns(rewards)
  local total, found = 0, rewards:tolist()
  for t = #found, 1, -1 do
    total = found[t] + 0.9 * total
    found[t] = total
  end
  found = lt.tensor(found)
  return (found - found:mean()) / (found:std() + 1e-6)
end

--- A symmetric adjacency matrix with loops.
function formulas.graph(n)
  local a = formulas.ids({n, n}, 4):eq(0):to "f32"
  return (a + a:t() + lt.eye(n)):gt(0):to "f32"
end

return formulas
