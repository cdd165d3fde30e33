-- examples/tabular.lua: a table of houses: categories and numbers, embeddings and an MLP, a price.
--
--   ltrain run examples/tabular.lua --max_epochs 20
--
-- Makes houses.csv, trains on 80 % of its rows and validates on the others (val_error, in
-- thousands, falls below 20), then writes predictions.csv of rows with missing fields too.
local lt = require "ltrain"
local nn = lt.nn
local CATEGORIES <const>, NUMBERS <const> = {"kind", "city"}, {"size", "rooms", "year"}

-- Houses whose price follows from the rest, but for some noise; some fields are missing.
local function make(path, n)
  local kinds, cities = {"flat", "terraced", "detached"}, {"Aalen", "Bonn", "Celle", "Dessau"}
  local kind, city, size, rooms, year, price = {}, {}, {}, {}, {}, {}
  for k = 1, n do
    local i, j = math.random(#kinds), math.random(#cities)
    local area, built = math.random(40, 200), math.random(1950, 2020)
    kind[k], city[k], size[k], rooms[k] = kinds[i], cities[j], area, area // 25
    year[k] = math.random() < 0.05 and 0 / 0 or built -- NaN: missing
    price[k] = area * (2 + 0.5 * i) * (1 + 0.2 * j) // 1 + (built - 1950) + math.random(0, 10)
  end
  lt.csv.table{{"kind", kind}, {"city", city}, {"size", size}, {"rooms", rooms}, {"year", year},
    {"price", price}}:write(path)
end

local Houses = lt.Module:extend("Houses")

-- What the training data has, its categories and scales, is part of the model and of its files.
function Houses:init(train)
  self.encoder = lt.data.OrdinalEncoder(CATEGORIES)
  self.scaler = lt.data.Scaler(#NUMBERS, {fill = 0})
  self.price = lt.data.Scaler(1)
  self.encoder:fit(train)
  self.scaler:fit(train:tensor(NUMBERS))
  self.price:fit(train:tensor{"price"})
  self.embeddings = {}
  for k, n in ipairs(self.encoder:sizes()) do
    self.embeddings[k] = nn.Embedding(n + 1, 4) -- row 0: missing, or not known
  end
  local inputs = 4 * #CATEGORIES + #NUMBERS
  self.layers = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 1))
end

-- A table as what forward takes: ids [N, 2], numbers [N, 3].
function Houses:inputs(t)
  return self.encoder(t), self.scaler(t:tensor(NUMBERS))
end

function Houses:forward(ids, numbers)
  local parts = {numbers}
  for k, embedding in ipairs(self.embeddings) do
    parts[k + 1] = embedding(ids:select(2, k) + 1)
  end
  local y = self.layers(lt.cat(parts, 2))
  return y
end

function Houses:training_step(batch)
  local loss = lt.mse_loss(self(batch[1], batch[2]), self.price(batch[3]))
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

function Houses:validation_step(batch)
  local price = self.price:inverse(self(batch[1], batch[2]))
  self:log("val_error", (price - batch[3]):abs():mean(), {prog_bar = true})
end

function Houses:configure_optimizers()
  return lt.optim.AdamW(self:parameters(), {lr = 3e-3})
end

make("houses.csv", 2000)
local t = assert(lt.csv.read("houses.csv"))
local is_train = lt.rand(#t):lt(0.8)
local train, val = t:where(is_train), t:where(is_train:logical_not())
local model = Houses(train)

local function loader(part, shuffle)
  local ids, numbers = model:inputs(part)
  local set = lt.data.TensorDataset(ids, numbers, part:tensor{"price"})
  return lt.data.DataLoader(set, {batch_size = 32, shuffle = shuffle})
end
lt.Trainer{max_epochs = 20}:fit(model, loader(train, true), loader(val))

model:eval()
local _ <close> = lt.no_grad()
local price = model.price:inverse(model(model:inputs(val)))
lt.csv.table{
  {"kind", val:text("kind")}, {"city", val:text("city")},
  {"price", val:tensor("price", {dtype = "f64"})}, {"predicted", price:view(-1):round()},
}:write("predictions.csv")
