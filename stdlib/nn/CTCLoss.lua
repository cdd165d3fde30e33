-- stdlib/nn/CTCLoss.lua: connectionist temporal classification: sequences without alignment.
-- N sequences, T steps, C classes, S labels of the longest target.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local CTCLoss = Loss:extend("CTCLoss")

CTCLoss.__arguments = "| blank reduction zero_infinity"

CTCLoss.options = {
  blank = { type = "integer", default = 0, min = 0, doc = "the blank class" },
  reduction = Loss.reduction,
  zero_infinity = { type = "boolean", default = false,
    doc = "losses of targets that are too long for their input are 0, with zero gradient" },
}

--- nn.CTCLoss(): batch-first, unlike PyTorch's, whose log_probs are [T, N, C].
function CTCLoss:init(options) Loss.init(self, options) end

---@param log_probs Tensor [N, T, C] of log_softmax, or [T, C]
---@param targets Tensor [N, S] of ids, or all targets concatenated, [S]
---@param input_lengths Tensor [N] of integers
---@param target_lengths Tensor [N] of integers
function CTCLoss:forward(log_probs, targets, input_lengths, target_lengths)
  local loss = c.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.options)
  return loss
end

return CTCLoss
