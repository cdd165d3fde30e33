-- examples/predict.lua: load a checkpoint of digits.lua, classify digits, draw them as text.
--
--   ltrain run examples/digits.lua
--   ltrain examples/predict.lua ltrain_logs/version_0/checkpoints/last.ckpt [how many]
--
-- Prints each digit as 28 lines of text with the model's answer and how sure it is.
local lt = require "ltrain"

local file, count = arg[1], tonumber(arg[2]) or 3
if not file then
  print("usage: ltrain examples/predict.lua CHECKPOINT [COUNT]")
  os.exit(2)
end
local Digits = assert(loadfile((arg[0]:gsub("[^/]*$", "digits.lua"))))("class")
local model = Digits:load_from_checkpoint(file)
model:eval()

local shades = {" ", ".", ":", "+", "#", "@"}
local function draw(image) -- [28, 28], values in 0..1
  for _, row in image:rows() do
    local line = {}
    for _, v in ipairs(row:tolist()) do line[#line + 1] = shades[1 + math.floor(v * 5.99)] end
    print(table.concat(line))
  end
end

local digits = lt.data.digits{split = "test"}
local _ <close> = lt.no_grad()
for i = 1, count do
  local image, label = table.unpack(digits:get(i))
  local sure, answer = model(image:unsqueeze(1)):softmax(-1):max(-1)
  draw(image[1])
  local text = "answer %d (%.1f %% sure), label %d"
  print(text:format(answer:item(), 100 * sure:item(), label:item()))
end
