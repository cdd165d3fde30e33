-- stdlib/models/generate.lua: lt.generate: tokens from a language model, one after the other.
-- N sequences, T positions, V vocabulary.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = {
  max_new_tokens = { type = "integer", required = true, min = 1, doc = "tokens to add, at most" },
  temperature = { type = "number", default = 1, min = 0,
    doc = "logits are divided by it; 0: always the likeliest token" },
  top_k = { type = "integer", min = 1, doc = "draw among the k likeliest tokens" },
  top_p = { type = "number", above = 0, max = 1,
    doc = "draw among the likeliest tokens whose probabilities together reach it" },
  stop = { type = "integer|table", doc = "id, or list of ids, after which a sequence ends" },
  on_token = { type = "function",
    doc = "called with each new id, of several sequences with a tensor [N]; false ends all" },
  context = { type = "integer", min = 1,
    doc = "of a model without a cache: it sees the last so many ids only" },
}

-- Logits [N, V] with those below the k largest at -infinity.
local function keep_top_k(logits, k)
  if k >= logits.shape[2] then return logits end
  local least = logits:topk(k):narrow(2, k, 1)
  return logits:masked_fill(logits:lt(least), -math.huge)
end

-- A draw [N, 1] among the likeliest whose probabilities before them do not reach p.
local function draw_top_p(logits, p)
  local sorted, order = logits:sort(-1, { descending = true })
  local probabilities = sorted:softmax(-1)
  local before = probabilities:cumsum(-1) - probabilities
  local drawn = probabilities:masked_fill(before:ge(p), 0):multinomial(1)
  return order:gather(drawn, 2)
end

-- Logits [N, V] to the next ids [N, 1].
local function next_ids(logits, o)
  logits = logits:float()
  if o.temperature == 0 then return logits:argmax(-1):unsqueeze(2) end
  logits = logits / o.temperature
  if o.top_k then logits = keep_top_k(logits, o.top_k) end
  if o.top_p then return draw_top_p(logits, o.top_p) end
  return logits:softmax(-1):multinomial(1)
end

-- Puts the model in evaluation mode until the scope ends.
local function evaluating(model)
  local modules = type(model) == "table" and model.modules and model:modules() or {}
  local training = {}
  for k, module in ipairs(modules) do training[k] = module.training end
  if modules[1] then model:eval() end
  return setmetatable({}, { __close = function()
    for k, module in ipairs(modules) do module.training = training[k] end
  end })
end

local function batch_of(ids, model)
  if type(ids) == "table" then ids = c.tensor(ids, { dtype = "i64" }) end
  if not c.is_tensor(ids) or ids.ndim < 1 or ids.ndim > 2 or ids.shape[ids.ndim] == 0 then
    errors.blame("generate: ids must be a tensor [T] or [N, T] of at least one id: got %s",
      errors.show(ids))
  end
  local device = type(model) == "table" and model.device
  ids = device and ids:to(device) or ids
  return ids.ndim == 1 and ids:unsqueeze(1) or ids, ids.ndim == 1
end

-- Sequences that have ended go on with their stop id. Returns the ids [N, 1] and whether all have.
local function ended(state, ids, stop)
  if not stop then return ids, false end
  if state.done then ids = c.where(state.done, state.last, ids) end
  local done = state.done or c.zeros(ids.shape, { dtype = "bool", device = ids.device })
  for _, id in ipairs(stop) do done = done:logical_or(ids:eq(id)) end
  state.done, state.last = done, ids
  return ids, done:all():item()
end

local function tell(on_token, ids)
  if not on_token then return true end
  return on_token(ids.shape[1] == 1 and ids:item() or ids:squeeze(2)) ~= false
end

-- Ids that the model has not seen yet: all of them without a cache.
local function unseen(ids, new, cache, o)
  if cache ~= nil and new then return new end
  local t = ids.shape[2]
  if o.context and t > o.context then return ids:narrow(2, t - o.context + 1, o.context) end
  return ids
end

--- Adds tokens to ids [T] or [N, T]: `logits, cache = model(ids, cache)` gives logits [N, T, V] and
--- a cache; ids are then those of further positions alone. The cache that
--- `model:new_cache(length)` makes is allocated once; a model whose second result is nil has none,
--- and is given all ids each time. The model is in evaluation mode meanwhile. Returns all ids; a
--- sequence that has ended before others is filled up with its stop id.
---@param model Module
---@param ids Tensor [T] or [N, T]
return function(model, ids, options)
  local o <const> = config.check(options, OPTIONS, "generate")
  local stop = math.type(o.stop) and { o.stop } or o.stop
  local all, is_single = batch_of(ids, model)
  local _ <close> = evaluating(model)
  local _ <close> = c.no_grad()
  local cache = type(model) == "table" and model.new_cache
    and model:new_cache(all.shape[2] + o.max_new_tokens) or nil
  local state, new = {}, nil
  for _ = 1, o.max_new_tokens do
    local logits, finished
    logits, cache = model(unseen(all, new, cache, o), cache)
    new, finished = ended(state, next_ids(logits:select(2, -1), o), stop)
    all = c.cat({ all, new }, 2)
    if not tell(o.on_token, new) or finished then break end
  end
  return is_single and all[1] or all
end
