--- stdlib/parallel/context_parallel.lua: lt.parallel.context_parallel: a scope in which a model
--- computes with its ranks' parts of a sequence.
local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local ring_attention = require "ltrain.parallel.ring_attention"
local split = require "ltrain.parallel.split_sequence"
local split_sequence = require "ltrain.core.split_sequence"
local ulysses_attention = require "ltrain.parallel.ulysses_attention"

local WHO <const> = "context_parallel"

local ATTENTION <const> = { ring = ring_attention, ulysses = ulysses_attention }

local OPTIONS <const> = {
  buffers = { type = "table", default = {}, doc = "a list of tensors with the whole sequence, the "
    .. "same on all ranks: their parts are returned" },
  dims = { type = "table", default = {}, doc = "the dim of the sequence of each; by default 2" },
  attention = { type = "string", default = "ring", choices = { "ring", "ulysses" },
    doc = "keys and values go round a ring, or heads are exchanged" },
  balance = { type = "boolean", default = true, doc = "rank r of N has the chunks r and "
    .. "2 N - 1 - r of 2 N; false: chunk r of N" },
}

local OPERATION <const> = "scaled_dot_product_attention"

-- The arguments of a call of it behind q, k and v, by place; and PyTorch's names.
local PLACES <const> = { { "mask" }, { "dropout_p" }, { "causal" }, { "scale" }, { "enable_gqa" } }
local NAMES <const> = { is_causal = "causal", attn_mask = "mask" }
local CALL <const> = { mask = {}, dropout_p = {}, causal = {}, scale = {}, enable_gqa = {} }

-- What calls of the operation do in a scope.
local function attention_in(o)
  local attend = ATTENTION[o.attention]
  return function(q, k, v, ...)
    local call = {}
    for name, value in next, call_form.options(PLACES, OPERATION, ...) do
      call[NAMES[name] or name] = value
    end
    call = config.check(call, CALL, OPERATION)
    call.group, call.balance = o.group, o.balance
    return (attend(q, k, v, call))
  end
end

-- The chunks of this rank of a sequence of which it has `count` positions.
local function chunks_in(o)
  local rank, ranks = split.place(o.group)
  return function(count)
    local own, list = split.chunks(rank, ranks, o.balance), {}
    if count % #own ~= 0 then
      errors.blame("%s: %d positions of a rank are not two chunks of the sequence", WHO, count)
    end
    local each = count // #own
    for i, chunk in ipairs(own) do list[i] = { from = chunk * each, count = each } end
    return list
  end
end

local current -- the options of the scope that is open; nil: none

local function enter(o)
  local outer = current
  current = o
  local positions = split_sequence.use(o and chunks_in(o))
  c.runtime.replace_operation(OPERATION, o and attention_in(o))
  return setmetatable({}, { __close = function()
    current = outer
    local _ <close> = positions
    c.runtime.replace_operation(OPERATION, outer and attention_in(outer))
  end })
end

local function parts_of(o)
  local parts = {}
  for i, x in ipairs(o.buffers) do
    parts[i] = split.split_sequence(x, o.dims[i], { group = o.group, balance = o.balance })
  end
  return table.unpack(parts)
end

local scopes = {}

--- Until the first result is closed, tensors have this rank's part of sequences that the ranks of
--- `group` (nil: all) share: lt.scaled_dot_product_attention, and all layers that use it, attend to
--- the whole sequence, and layers of positions add those of this rank. Further results are the
--- parts of `buffers`. Everything else is computed for each position alone. As PyTorch's
--- context_parallel.
function scopes.context_parallel(group, options)
  local o = config.check(options, OPTIONS, WHO)
  if group ~= nil then config.argument(group, "object", WHO, "group") end
  o.group = group
  return enter(o), parts_of(o)
end

--- Returns the positions in the whole sequence of this rank's `count` tokens: [count], from 0. In a
--- scope of context_parallel those of its part, elsewhere 0 .. count - 1.
function scopes.positions(count)
  return split_sequence.positions(config.argument(count, "integer", "positions", "count",
    { min = 0 }))
end

return scopes
