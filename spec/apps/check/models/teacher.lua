-- spec/apps/check/models/teacher.lua: a teacher that follows the student's weights (mean teacher,
-- BYOL).
local lt = require "ltrain"
local nn = lt.nn
local Byol = lt.Module:extend "Byol"
local function tower() return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16)) end
function Byol:init()
  self.student, self.teacher = tower(), tower()
  self.predictor = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
  self.teacher:load_state_dict(self.student:state_dict())
  for _, parameter in self.teacher:named_parameters() do parameter.requires_grad = false end
end
function Byol:training_step(batch)
  local x = batch[1]
  local one, two = x + 0.1 * lt.randn_like(x), x + 0.1 * lt.randn_like(x)
  local wanted = lt.no_grad(function() return self.teacher(two) end)
  local given = self.predictor(self.student(one))
  local normalize = nn.functional.normalize
  local loss = 2 - 2 * (normalize(given) * normalize(wanted)):sum(-1):mean()
  lt.allow_update(function()
    lt.no_grad(function()
      local own = {}
      for name, parameter in self.student:named_parameters() do own[name] = parameter end
      for name, parameter in self.teacher:named_parameters() do
        parameter:mul_(0.99):add_(own[name] * 0.01)
      end
    end)
  end)
  return loss
end
function Byol:configure_optimizers()
  local list = {}
  for _, part in ipairs { self.student, self.predictor } do
    for _, parameter in part:named_parameters() do list[#list + 1] = parameter end
  end
  return lt.optim.SGD(list, { lr = 0.05, momentum = 0.9 })
end
local data = lt.data.TensorDataset(lt.randn(64, 8))
return { model = Byol(), data = lt.data.DataLoader(data, { batch_size = 16, shuffle = true }) }
