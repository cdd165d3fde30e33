--- stdlib/runs/better_mode.lua: whether a larger value of a metric is better, by its name.
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

--- "max" of names that say so, else "min".
return function(name) return is_high(name) and "max" or "min" end
