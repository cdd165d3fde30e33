-- spec/parity/models.lua: which models of lt.models are compared with those of PyTorch's libraries:
-- not on random calls, but on weights by a rule, in spec/models.
local lt = require "ltrain"

local M = {except = {["models.keys"] = "names of weights: spec/models/models_spec.lua"}}

-- Sizes of a family of which others are recorded.
local FAMILY <const> = {vgg11_bn = "vgg13_bn", vgg13 = "vgg11", vgg16 = "vgg19",
  vgg19_bn = "vgg16_bn"}

local function is_recorded(name)
  local file <close> = io.open("spec/models/" .. (FAMILY[name] or name) .. ".pt")
  return file ~= nil
end

--- No names of cases; those of models without a record.
function M.names()
  local lack = {}
  for _, name in pairs(lt.models) do
    local full = "models." .. name
    if is_recorded(name) then
      M.except[full] = "of weights by a rule: spec/models/models_spec.lua"
    elseif not M.except[full] then
      lack[#lack + 1] = full
    end
  end
  return {}, lack
end

return M
