--- stdlib/strategies/precision.lua: what the Trainer's `precision` means: names of built-in
--- precisions.
local Precision = require "ltrain.core.Precision"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"
local tree = require "ltrain.core.tree"

local precision = {}

local SAME <const> = { ["16"] = "16-mixed", ["32"] = "32-true", ["64"] = "64-true",
  ["bf16"] = "bf16-mixed" }

-- Weights and updates stay as they are; the dtype of products.
local MIXED <const> = { ["16-mixed"] = "f16", ["bf16-mixed"] = "bf16" }

-- The dtype of weights and of batches.
local TRUE <const> = { ["16-true"] = "f16", ["64-true"] = "f64", ["bf16-true"] = "bf16" }

-- nn.Linear in float8; the dtype of the rest, and of weights where `whole`.
local FLOAT8 <const> = {
  ["fp8-mixed"] = { autocast = "bf16" },
  ["transformer-engine"] = { autocast = "bf16", whole = true },
  ["transformer-engine-float16"] = { autocast = "f16", whole = true },
}

local NAMES <const> = { "16-mixed", "16-true", "32-true", "64-true", "bf16-mixed", "bf16-true",
  "fp8-mixed", "transformer-engine", "transformer-engine-float16" }

-- Weights, and floating tensors of batches, in one dtype.
local function whole(name, dtype)
  return Precision.adopt({
    name = name,
    convert_module = function(_, module) module:to(dtype) end,
    convert_input = function(_, batch)
      return tree.map(batch, function(leaf)
        return c.is_tensor(leaf) and is_float(leaf.dtype) and leaf:to(dtype) or leaf
      end)
    end,
  }, "precision")
end

--- Returns the precision of a name or number; an unknown one is an error. `where`: "Trainer".
function precision.plugin(value, where)
  local word = tostring(value):lower()
  word = SAME[word] or word
  if word == "32-true" then return Precision() end
  if TRUE[word] then return whole(word, TRUE[word]) end
  if MIXED[word] then
    local fields = { name = word, autocast = MIXED[word], _is_built_in = true }
    if word == "16-mixed" then fields.scaler = require "ltrain.optim.GradScaler"() end
    return Precision.adopt(fields, "precision")
  end
  local float8 = FLOAT8[word]
  if float8 then
    local Float8Precision = require "ltrain.strategies.float8.Float8Precision"
    return Float8Precision(word, float8.autocast, float8.whole and whole(word, float8.autocast))
  end
  errors.blame("%s: precision = %s: must be one of %s%s", where or "Trainer", errors.show(value),
    table.concat(NAMES, ", "), errors.did_you_mean(word, NAMES))
end

--- The precision to use on a device in place of `own`, and what to say about it: "16-mixed" on the
--- CPU is "bf16-mixed", as in Lightning. One that a script has made stays.
function precision.on_device(own, device)
  if device ~= "cpu" or own.name ~= "16-mixed" or not own._is_built_in then return own end
  return precision.plugin "bf16-mixed",
    "precision = '16-mixed' is for GPUs: on the CPU it is 'bf16-mixed'"
end

return precision
