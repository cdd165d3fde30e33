-- examples/images.lua: a network learns what is in photographs, from a folder for each class.
--
--   ltrain run examples/images.lua                     draws 900 shapes in ./shapes, learns them
--   ltrain run examples/images.lua -- --data FOLDER    FOLDER/train/CLASS/*, FOLDER/val/CLASS/*
--
-- Prints the metrics of each epoch: over 90 % of the drawn shapes are told apart in the end. Files
-- are read, cropped and coloured in threads of C while the network learns.
local lt = require "ltrain"
local nn, T = lt.nn, lt.transforms

-- Circles, squares and triangles of any colour and place, some as PNG, some as JPEG.
local SHAPES <const> = {
  circle = function(x, y, r) return (x * x + y * y):lt(r * r) end,
  square = function(x, y, r) return lt.maximum(x:abs(), y:abs()):lt(0.85 * r) end,
  triangle = function(x, y, r) return (x:abs() * 2):lt(y + r):logical_and(y:lt(0.8 * r)) end,
}

local function draw(inside)
  local height, width = math.random(48, 64), math.random(48, 64)
  local y = lt.arange(height):to "f32":view(-1, 1) - math.random(20, height - 20)
  local x = lt.arange(width):to "f32":view(1, -1) - math.random(20, width - 20)
  local shape = inside(x, y, math.random(14, 20)):to "f32":unsqueeze(1)
  local ink, paper = lt.rand(3, 1, 1), lt.rand(3, 1, 1)
  ink = (ink + (ink - paper):sign() * 0.4):clamp{min = 0, max = 1}
  local image = shape * ink + (1 - shape) * paper + lt.randn(3, height, width) * 0.05
  return image:clamp{min = 0, max = 1}
end

-- Drawn under a name of its own, and renamed when whole: ranks that mpirun starts draw at once.
local function make_folder(root)
  if os.rename(root, root) then return root end -- it is there
  local name = os.tmpname()
  local own = root .. name:match("[^/]+$")
  os.remove(name)
  lt.seed(1)
  for split, n in pairs{train = 250, val = 50} do
    for class, inside in pairs(SHAPES) do
      local folder = ("%s/%s/%s"):format(own, split, class)
      assert(os.execute(("mkdir -p '%s'"):format(folder)))
      for k = 1, n do
        local kind = k % 2 == 0 and "png" or "jpg"
        assert(lt.image.write(("%s/%03d.%s"):format(folder, k, kind), draw(inside)))
      end
    end
  end
  if not os.rename(own, root) then os.execute(("rm -r '%s'"):format(own)) end -- another was faster
  return root
end

local Photos = lt.Module:extend("Photos")

function Photos:init(classes)
  local function block(from, to)
    return nn.Sequential(nn.Conv2d(from, to, 3, {padding = 1}), nn.BatchNorm2d(to), nn.ReLU(),
      nn.MaxPool2d(2))
  end
  self.body = nn.Sequential(block(3, 16), block(16, 32), block(32, 64))
  self.head = nn.Linear(64 * 5 * 5, classes)
  self.accuracy = lt.metrics.Accuracy()
end

function Photos:forward(x) -- [B, 3, 40, 40] -> [B, classes]
  local features = self.body(x)
  local logits = self.head(features:flatten(2))
  return logits
end

function Photos:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

function Photos:validation_step(batch)
  self.accuracy:update(self(batch[1]), batch[2])
  self:log("val_acc", self.accuracy, {prog_bar = true})
end

function Photos:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 1e-3})
end

local folder = arg and arg[1] == "--data" and arg[2] or make_folder "shapes"
lt.seed(1)
local last = {T.ToTensor(), T.Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})}
local train = lt.data.ImageFolder(folder .. "/train", {transform = T.Compose{
  T.RandomResizedCrop(40, {scale = {0.8, 1}}), T.RandomHorizontalFlip{},
  T.ColorJitter{brightness = 0.3, saturation = 0.3}, table.unpack(last)}})
local val = lt.data.ImageFolder(folder .. "/val", {transform = T.Compose{
  T.Resize(40), T.CenterCrop(40), table.unpack(last)}})
print(#train .. " images of " .. table.concat(train.classes, ", "))

local trainer = lt.Trainer{max_epochs = 6}
trainer:fit(Photos(#train.classes), {
  train = lt.data.DataLoader(train, {batch_size = 32, shuffle = true}),
  val = lt.data.DataLoader(val, {batch_size = 60}),
})
