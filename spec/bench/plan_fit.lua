-- spec/bench/plan_fit.lua: a model of spec/bench/plan.lua, which `ltrain plan` gets; with the names
-- of a strategy and the number of ranks it prints the seconds of the shortest step. Three of the
-- models are so small that some steps are not disturbed on machines that others use; two have steps
-- of some tens of milliseconds.
local lt = require "ltrain"
local nn = lt.nn
local LARGE <const> = { gpt = true, cnn = true }
local WARM <const>, UNITS <const> = 4, 4000

local models = {}

function models.mlp()
  local net = nn.Sequential()
  for _ = 1, 3 do
    net:append(nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128)))
  end
  function net:training_step(batch) return lt.mse_loss(self(batch[1]), batch[2]) end
  return net, lt.data.TensorDataset(lt.randn(4096, 128), lt.randn(4096, 128)), 8
end

-- A language model: tokens in samples of T, in batches.
local function text(width, layers, T, rows)
  local Text = lt.Module:extend "Text"
  function Text:init()
    self.token, self.position = nn.Embedding(64, width), nn.Embedding(T, width)
    self.blocks = nn.ModuleList()
    for _ = 1, layers do
      self.blocks:append(nn.TransformerEncoderLayer(width, 4, { dim_feedforward = 2 * width }))
    end
    self.head = nn.Linear(width, 64)
  end
  function Text:training_step(batch)
    local x = self.token(batch[1]) + self.position(lt.arange(0, T))
    for _, block in ipairs(self.blocks) do x = block(x) end
    return lt.cross_entropy(self.head(x):flatten(1, 2), batch[2]:flatten())
  end
  local function tokens() return lt.randint(64, { 2048, T }) end
  return Text(), lt.data.TensorDataset(tokens(), tokens()), rows
end

-- A convolutional network over square images.
local function images(channels, side, rows)
  local net = nn.Sequential(nn.Conv2d(3, channels, 3, { padding = 1 }), nn.BatchNorm2d(channels),
    nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(channels, 2 * channels, 3, { padding = 1 }),
    nn.BatchNorm2d(2 * channels), nn.ReLU(), nn.Flatten(),
    nn.Linear(2 * channels * (side // 2) * (side // 2), 128), nn.ReLU(), nn.Linear(128, 10))
  function net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
  return net, lt.data.TensorDataset(lt.randn(2048, 3, side, side), lt.randint(10, { 2048 })), rows
end

function models.text() return text(48, 2, 16, 4) end
function models.images() return images(8, 8, 4) end
function models.gpt() return text(256, 4, 64, 8) end
function models.cnn() return images(32, 32, 32) end

local module, set, size = models[arg[1]]()
function module:configure_optimizers() return lt.optim.Adam(self:parameters()) end
local data = lt.data.DataLoader(set, { batch_size = size })
local options = { logger = false, max_steps = LARGE[arg[1]] and 60 or 1000,
  enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false }
if not arg[2] then
  options.strategy = lt.strategies.Sharded { units = UNITS }
  return { model = module, data = data, trainer = options }
end

local stages <const> = { zero1 = 1, deepspeed_stage_2 = 2, fsdp = 3 }
local clock, times, before = require "ltrain.c".runtime.clock, {}, nil
function module:on_train_batch_end()
  local now = clock()
  if self.trainer.global_step > WARM then times[#times + 1] = now - before end
  before = now
end
options.devices = math.tointeger(tonumber(arg[3]))
options.strategy = arg[2] == "single_device" and "auto" or stages[arg[2]]
  and lt.strategies.Sharded { stage = stages[arg[2]], units = UNITS } or arg[2]
lt.Trainer(options):fit(module, data)
print(math.min(table.unpack(times)))
