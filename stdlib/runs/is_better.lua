--- stdlib/runs/is_better.lua: whether a value of a metric is better than another.
local HIGH <const> = { "acc", "f1", "auroc", "auc", "precision", "recall", "iou", "psnr", "ssim",
  "bleu", "map", "r2", "mcc", "ndcg" }

-- The parts of a name: of val_acc val and acc.
local function is_high(name)
  for part in name:lower():gmatch "[%a%d]+" do
    for _, word in ipairs(HIGH) do
      if part == word or part:find("^" .. word .. "%d*$") or part == "accuracy" then return true end
    end
  end
  return false
end

local is_better = {}

--- "max" of names that say so, else "min".
function is_better.mode(name) return is_high(name) and "max" or "min" end

return setmetatable(is_better, { __call = function(_, mode)
  if mode == "max" then return function(a, b) return a > b end end
  return function(a, b) return a < b end
end })
