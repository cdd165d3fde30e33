-- spec/gpu/sections/specs.lua: all specs that have tensors on a GPU, by folder.
local section = require "spec.gpu.section"
local specs = require "spec.gpu.sections.kernels"

for _, part in ipairs {
  { "cuda", "spec/cuda" },
  { "ops", "spec/ops spec/autograd spec/optim" },
  { "layers", "spec/nn spec/metrics" },
  { "fits", "spec/trainer" },
  { "ranks", "spec/dist spec/strategies spec/parallel" },
} do
  local name, folders = table.unpack(part)
  section.add(name, "specs: " .. folders, function() specs(folders) end)
end
