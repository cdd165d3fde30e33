-- examples/generate.lua: a tiny GPT-2 learns a text by its tokens, then goes on with a beginning.
--
--   ltrain run examples/generate.lua -- --data input.txt "Once"   any text file, and a beginning
--   ltrain run examples/generate.lua                              sentences that are made here
--
-- The tokenizer is trained first, and the text becomes a file of tokens that training maps. Prints,
-- after 20 epochs within a minute, sentences of the same kind.
local lt = require "ltrain"

local path, beginning = "input.txt", arg[1] ~= "--data" and arg[1] or arg[3]
if arg[1] == "--data" then
  path = arg[2]
else -- each line goes on where the one before it ended
  lt.seed(1)
  local places = {"the mill", "the bridge", "the old barn", "the river", "a green hill", "the inn"}
  local ways = {"a path leads to", "we walked to", "you can see", "it is not far to"}
  local lines, here = {}, places[1]
  for k = 1, 1500 do
    local there = places[math.random(#places)]
    lines[k] = ("from %s %s %s."):format(here, ways[math.random(#ways)], there)
    here = there
  end
  local name = os.tmpname() -- ranks that mpirun starts write at once, each a file of its own
  local own = path .. name:match("[^/]+$")
  local file = assert(io.open(own, "w"))
  file:write(table.concat(lines, "\n"), "\n")
  file:close()
  assert(os.rename(own, path))
  os.remove(name)
end

local text = assert(io.open(path, "rb")):read("a")
local tokenizer = lt.text.BPETokenizer.train(text, {vocab_size = 512})
assert(tokenizer:save("tokenizer.json"))
assert(lt.text.write_tokens("tokens.bin", tokenizer, path))
local ids = assert(lt.text.read_tokens("tokens.bin"))

local GPT = lt.models.gpt2:extend("GPT")

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
  return lt.optim.AdamW(self:parameters(), {lr = 2e-3})
end

local T = 128
local function loader(from, to, shuffle)
  local blocks = lt.text.token_blocks(ids[{{from, to}}], T)
  return lt.data.DataLoader(blocks, {batch_size = 8, shuffle = shuffle})
end
local cut = #ids * 9 // 10
local model = GPT{vocab_size = tokenizer.vocab_size, n_positions = T, n_embd = 96, n_layer = 3,
  n_head = 4, dropout = 0}
local trainer = lt.Trainer{max_epochs = 20}
trainer:fit(model, {train = loader(1, cut, true), val = loader(cut + 1, #ids)})

-- The keys and values of each position are computed once: lt.generate gives the model a cache.
local prompt = tokenizer:encode(beginning or "from the mill")
local said = lt.generate(model, prompt, {max_new_tokens = T - #prompt, temperature = 0.7,
  top_k = 20})
trainer:print(tokenizer:decode(said))
