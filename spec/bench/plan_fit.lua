-- spec/bench/plan_fit.lua: a model of spec/bench/plan.lua, which `ltrain plan` gets; with the names
-- of a strategy and the number of ranks it prints the seconds of the shortest step.
local lt = require "ltrain"
local nn = lt.nn
local STEPS <const>, WARM <const> = 300, 4

local models = {}

function models.mlp()
  local net = nn.Sequential()
  for _ = 1, 6 do
    net:append(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)))
  end
  function net:training_step(batch) return lt.mse_loss(self(batch[1]), batch[2]) end
  return net, lt.data.TensorDataset(lt.randn(1024, 256), lt.randn(1024, 256)), 16
end

function models.text()
  local T <const>, Text = 32, lt.Module:extend "Text"
  function Text:init()
    self.token, self.position = nn.Embedding(256, 96), nn.Embedding(T, 96)
    self.blocks = nn.ModuleList()
    for _ = 1, 2 do
      self.blocks:append(nn.TransformerEncoderLayer(96, 4, { dim_feedforward = 384 }))
    end
    self.head = nn.Linear(96, 256)
  end
  function Text:training_step(batch)
    local x = self.token(batch[1]) + self.position(lt.arange(0, T))
    for _, block in ipairs(self.blocks) do x = block(x) end
    return lt.cross_entropy(self.head(x):flatten(1, 2), batch[2]:flatten())
  end
  local function tokens() return lt.randint(256, { 256, T }) end
  return Text(), lt.data.TensorDataset(tokens(), tokens()), 8
end

function models.images()
  local net = nn.Sequential(nn.Conv2d(3, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(),
    nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, { padding = 1 }), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Flatten(), nn.Linear(16 * 64, 128), nn.ReLU(), nn.Linear(128, 10))
  function net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
  return net, lt.data.TensorDataset(lt.randn(512, 3, 16, 16), lt.randint(10, { 512 })), 16
end

local module, set, size = models[arg[1]]()
function module:configure_optimizers() return lt.optim.Adam(self:parameters()) end
local data = lt.data.DataLoader(set, { batch_size = size })
local options = { logger = false, max_steps = STEPS, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false }
if not arg[2] then return { model = module, data = data, trainer = options } end

local stages <const> = { zero1 = 1, deepspeed_stage_2 = 2, fsdp = 3 }
local clock, times, before = require "ltrain.c".runtime.clock, {}, nil
function module:on_train_batch_end()
  local now = clock()
  if self.trainer.global_step > WARM then times[#times + 1] = now - before end
  before = now
end
options.devices = math.tointeger(tonumber(arg[3]))
options.strategy = arg[2] == "single_device" and "auto" or stages[arg[2]]
  and lt.strategies.Sharded { stage = stages[arg[2]] } or arg[2]
lt.Trainer(options):fit(module, data)
print(math.min(table.unpack(times)))
