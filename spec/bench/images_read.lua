-- spec/bench/images_read.lua: our side of images.sh: images_read.lua FOLDER THREADS.
local c = require "ltrain.c"
local lt = require "ltrain"

local T <const> = lt.transforms
local clock <const> = c.runtime.clock

c.runtime.set_threads(tonumber(arg[2]))
local transform <const> = T.Compose { T.RandomResizedCrop(224), T.RandomHorizontalFlip {},
  T.ToTensor(), T.Normalize({ 0.485, 0.456, 0.406 }, { 0.229, 0.224, 0.225 }) }
local data <const> = lt.data.ImageFolder(arg[1], { transform = transform })
local loader <const> = lt.data.DataLoader(data, { batch_size = 50, shuffle = true, seed = 1 })

local rate, total, before = nil, 0, os.clock()
for _ = 1, 3 do
  local start, n = clock(), 0
  for batch in loader:batches() do n = n + batch[1].shape[1] end
  rate, total = n / (clock() - start), total + n
end
print(("ltrain %.0f %.2f"):format(rate, 1000 * (os.clock() - before) / total))
