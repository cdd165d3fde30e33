-- stdlib/models/generate.lua: lt.generate: generates tokens with a language model. N sequences, T
-- positions, V vocabulary.

local beam_search = require "ltrain.models.beam_search"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = {
  max_new_tokens = { type = "integer", required = true, min = 1, doc = "maximum number of new "
    .. "tokens" },
  temperature = { type = "number", default = 1, min = 0,
    doc = "divisor of the logits; 0: always the likeliest token" },
  top_k = { type = "integer", min = 1, doc = "sample from the k likeliest tokens" },
  top_p = { type = "number", above = 0, max = 1,
    doc = "sample from the likeliest tokens whose total probability reaches it" },
  stop = { type = "integer|table", doc = "id, or list of ids, that end a sequence" },
  on_token = { type = "function",
    doc = "called with each new id, for several sequences with a tensor [N]; returning false "
      .. "stops generation" },
  context = { type = "integer", min = 1,
    doc = "maximum number of ids that the model gets; by default `model.max_length`" },
  num_beams = { type = "integer", default = 1, min = 1,
    doc = "number of beams of beam search; 1: sampling" },
  length_penalty = { type = "number", default = 1,
    doc = "for beam search: log-probabilities are divided by length ^ length_penalty; positive "
      .. "values favour longer sequences" },
  early_stopping = { type = "boolean|string", default = false,
    check = function(value)
      if type(value) == "string" and value ~= "never" then
        return ("must be true, false or 'never': got '%s'"):format(value)
      end
    end,
    doc = "for beam search: true: stop with `num_beams` finished sequences; false: when a better "
      .. "one is unlikely; 'never': when a better one is impossible" },
  num_return_sequences = { type = "integer", default = 1, min = 1,
    doc = "number of sequences for each input sequence; for beam search the best ones" },
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
  return order:gather(2, drawn)
end

-- Logits [N, V] to the next ids [N, 1].
local function next_ids(logits, o)
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

-- Sequences that have ended continue with their stop id. Returns the ids [N, 1] and whether all
-- have.
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

-- How many ids the model may see; nil: any number.
local function context_of(model, o)
  local most <const> = type(model) == "table" and model.max_length or nil
  if o.context and most and o.context > most then
    errors.blame("generate: context must be at most %d, the model's max_length: got %d", most,
      o.context)
  end
  return o.context or most
end

-- Beams are reordered where their cache is.
local function reordered(model, cache, index)
  if cache == nil then return nil end
  if type(model) == "table" and model.reorder_cache then
    return model:reorder_cache(cache, index)
  end
  for _, part in ipairs(type(cache) == "table" and cache or { false }) do
    if type(part) ~= "table" or not part.reorder then
      errors.blame("generate: num_beams: a model with a cache needs "
        .. "reorder_cache(cache, index), which returns the cache of those rows of the batch")
    end
    part:reorder(index)
  end
  return cache
end

-- What asks the model: logits(all, new) of the next ids [N, V], where `new` are the last of all ids
-- [N, T], nil at first; reorder(index) makes rows of the batch its next ones. Beyond the context
-- each new id moves the positions of all others, so that no cache is of use from there on.
local function reader(model, length, o)
  local context <const> = context_of(model, o)
  local cache = type(model) == "table" and model.new_cache
    and model:new_cache(math.min(length, context or length)) or nil
  local source = {}
  function source.logits(all, new)
    local t <const> = all.shape[2]
    local logits
    if context and t > context then
      cache = nil
      logits = model(all:narrow(2, t - context + 1, context))
    else
      logits, cache = model(cache ~= nil and new or all, cache)
    end
    return logits:select(2, -1):float()
  end
  function source.reorder(index) cache = reordered(model, cache, index) end
  return source
end

-- What drawing and searching have each for themselves.
local function check_options(given, o)
  if o.num_beams > 1 then
    for _, name in ipairs { "top_k", "top_p", "on_token" } do
      if o[name] ~= nil then
        errors.blame("generate: %s: beams are not drawn one by one: leave it out, or num_beams",
          name)
      end
    end
    if given.temperature and given.temperature ~= 0 then
      errors.blame("generate: temperature: beams are not drawn: leave it out, or num_beams")
    end
    if o.num_return_sequences > o.num_beams then
      errors.blame("generate: num_return_sequences must be at most num_beams = %d: got %d",
        o.num_beams, o.num_return_sequences)
    end
  elseif o.num_return_sequences > 1 and o.temperature == 0 then
    errors.blame("generate: num_return_sequences = %d: the likeliest tokens are one sequence: "
      .. "give a temperature, or num_beams", o.num_return_sequences)
  end
end

-- Sequences of drawn ids.
local function drawn(source, all, stop, o)
  local state, new = {}, nil
  for _ = 1, o.max_new_tokens do
    local finished
    new, finished = ended(state, next_ids(source.logits(all, new), o), stop)
    all = c.cat({ all, new }, 2)
    if not tell(o.on_token, new) or finished then break end
  end
  return all
end

--- Appends tokens to ids [T] or [N, T]: `logits, cache = model(ids, cache)` returns logits [N, T,
--- V] and a cache, with which the next call gets the ids of new positions only. The cache of
--- `model:new_cache(length)` is allocated once; a model that returns no cache gets all ids each
--- time. If there are more ids than the context, the model gets the last ones each time, without a
--- cache. The model runs in evaluation mode. Returns all ids; a sequence that ends before others is
--- padded with its stop id. With `num_beams` of 2 or more, beam search is used: returns ids [N *
--- num_return_sequences, T], the best of each first, and their scores.
---@param model Module
---@param ids Tensor [T] or [N, T]
return function(model, ids, options)
  local o <const> = config.check(options, OPTIONS, "generate")
  check_options(options, o)
  local stop = math.type(o.stop) and { o.stop } or o.stop
  local all, is_single = batch_of(ids, model)
  local _ <close> = evaluating(model)
  local _ <close> = c.no_grad()
  local source <const> = reader(model, all.shape[2] + o.max_new_tokens, o)
  if o.num_beams > 1 then
    local found <const>, scores = beam_search(source, all, stop or {}, o)
    if is_single and o.num_return_sequences == 1 then return found[1], scores end
    return found, scores
  end
  if o.num_return_sequences > 1 then
    all, is_single = all:repeat_interleave(o.num_return_sequences, { dim = 1 }), false
  end
  all = drawn(source, all, stop, o)
  return is_single and all[1] or all
end
