-- examples/char_gpt.lua: a small GPT learns to write, character by character.
--
--   ltrain run examples/char_gpt.lua -- --data input.txt         any text file
--   ltrain run examples/char_gpt.lua                             a built-in nursery rhyme
--
-- On a megabyte of Shakespeare the validation loss passes 1.9 within minutes; prints a sample.
local lt = require "ltrain"
local nn, T = lt.nn, 64

local Block = lt.Module:extend("Block")

function Block:init(width, heads)
  self.heads = heads
  self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
  self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
  self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
end

function Block:attend(x) -- [B, T, C] -> [B, T, C]
  local b, t, c = table.unpack(x.shape)
  local qkv = self.qkv(x):view(b, t, 3, self.heads, c // self.heads):permute(3, 1, 4, 2, 5)
  local mixed = lt.scaled_dot_product_attention(qkv[1], qkv[2], qkv[3], {causal = true})
  local joined = mixed:transpose(2, 3):reshape(b, t, c)
  return (self.out(joined))
end

function Block:forward(x)
  x = x + self:attend(self.norm1(x))
  return x + self.mlp(self.norm2(x))
end

local GPT = lt.Module:extend("GPT")

function GPT:init(o)
  self:save_hyperparameters(o)
  self.token, self.position = nn.Embedding(o.vocabulary, o.width), nn.Embedding(T, o.width)
  self.blocks = nn.ModuleList{}
  for _ = 1, o.layers do self.blocks:append(Block(o.width, o.heads)) end
  self.norm, self.head = nn.LayerNorm(o.width), nn.Linear(o.width, o.vocabulary)
end

function GPT:forward(ids) -- [B, T] -> [B, T, vocabulary]
  local x = self.token(ids) + self.position(lt.arange(0, ids:size(2), {device = ids.device}))
  for _, block in ipairs(self.blocks) do x = block(x) end
  return (self.head(self.norm(x)))
end

function GPT:loss(batch)
  local logits = self(batch[1])
  return lt.cross_entropy(logits:flatten(1, 2), batch[2]:flatten())
end

function GPT:training_step(batch)
  local loss = self:loss(batch)
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

function GPT:validation_step(batch)
  self:log("val_loss", self:loss(batch), {prog_bar = true})
end

function GPT:configure_optimizers()
  return lt.optim.AdamW(self:parameters(), {lr = 1e-3, weight_decay = 0.1})
end

local text = arg[1] == "--data" and assert(io.open(arg[2], "rb")):read("a")
  or ("the cat sat on the mat and the dog sat on the log. "):rep(200)

-- The vocabulary: each byte that occurs, in order; ids count from 0.
local chars, rank = {}, {}
for byte = 0, 255 do
  rank[byte + 1] = #chars
  if text:find(string.char(byte), 1, true) then chars[#chars + 1] = string.char(byte) end
end
local ids = lt.tensor(rank)[lt.from_bytes(text, "u8"):to("i64")]

-- Windows of T characters and of the same one later; the last tenth validates.
local function loader(from, to, shuffle)
  local n = (to - from) // T
  local x, y = ids[{{from, from + n * T - 1}}], ids[{{from + 1, from + n * T}}]
  local windows = lt.data.TensorDataset(x:reshape(n, T), y:reshape(n, T))
  return lt.data.DataLoader(windows, {batch_size = 32, shuffle = shuffle, drop_last = shuffle})
end
local cut = #ids * 9 // 10
local model = GPT{vocabulary = #chars, width = 128, heads = 4, layers = 4}
local trainer = lt.Trainer{max_epochs = 5}
trainer:fit(model, {train = loader(1, cut, true), val = loader(cut + 1, #ids)})

-- A sample: draw one character after the other from what the model expects.
model:eval()
local line, _ <close> = ids[{{1, 1}}]:to(model.device), lt.no_grad()
for _ = 1, 200 do
  local recent = line[{{math.max(1, #line - T + 1), #line}}]
  local next_id = model(recent:unsqueeze(1))[1][-1]:softmax(-1):multinomial(1)
  line = lt.cat({line, next_id}, 1)
end
local out = {}
for _, id in ipairs(line:tolist()) do out[#out + 1] = chars[id + 1] end
trainer:print(table.concat(out))
