-- spec/onnx/models.lua: every model of lt.models, small, with inputs of several sizes.
local lt = require "ltrain"

local models = {}

--- Tensors of lists within lists, in order: the outputs of a file.
function models.tensors(...)
  local list = {}
  for k = 1, select("#", ...) do
    local value <const> = select(k, ...)
    if type(value) == "table" then
      table.move(models.tensors(table.unpack(value)), 1, 1000, #list + 1, list)
    else
      list[#list + 1] = value
    end
  end
  return list
end

local SEQUENCES <const> = {
  gpt2 = { n_positions = 16, n_embd = 32, n_layer = 2, n_head = 4 },
  bert = { hidden_size = 32, num_hidden_layers = 2, num_attention_heads = 4,
           intermediate_size = 64, max_position_embeddings = 16 },
  llama = { hidden_size = 32, num_hidden_layers = 2, num_attention_heads = 4,
            num_key_value_heads = 2, intermediate_size = 64, max_position_embeddings = 16 },
  lstm_lm = { width = 8, hidden = 8 },
}

local SMALL <const> = { -- options, and the shape of an input without its batch
  mlp = { { in_features = 6, hidden = { 8, 5 }, num_classes = 3 }, { 6 } },
  vae = { { in_features = 12, hidden = 8, latent = 3 }, { 12 } },
  vit = { { image_size = 16, patch_size = 8, hidden_dim = 32, num_layers = 2, num_heads = 4,
            mlp_dim = 64, num_classes = 10 }, { 3, 16, 16 } },
  convnext_tiny = { { num_classes = 5, widths = { 4, 6, 8, 8 }, blocks = { 1, 1, 2, 1 } },
                    { 3, 32, 32 } },
  dcgan = { { latent = 4, width = 4 }, { 4 } },
}
for _, name in ipairs { "resnet18", "resnet34", "resnet50" } do
  SMALL[name] = { { num_classes = 5, width = 4 }, { 3, 32, 32 } }
end
for _, name in ipairs { "vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn",
                        "vgg19_bn" } do
  SMALL[name] = { { num_classes = 5, width = 2, hidden = 8 }, { 3, 32, 32 } }
end

-- Gives the model other values than zeros and ones, by which outputs would depend on no input. In
-- an untrained ResNet they grow from block to block, and rounding with them.
local function stir(model)
  local _ <close> = lt.no_grad()
  for _, x in ipairs(model:parameters()) do x:add_(lt.randn(x.shape) * 0.02) end
  for _, module in ipairs(model.layer1 and model:modules() or {}) do
    if module.running_mean then module.weight:mul_(0.5) end
  end
end

-- Inputs of each of these shapes.
local function of_shapes(make, ...)
  local samples = {}
  for k, shape in ipairs { ... } do samples[k] = { make(shape) } end
  return samples
end

local function ids(shape) return lt.randint(0, 50, shape) end

-- What makes each case.
local makers = {}
for name, options in next, SEQUENCES do
  options.vocab_size = 50
  makers[name] = function()
    return { model = lt.models[name](options), axes = { input = { "batch", "length" } },
             samples = of_shapes(ids, { 1, 7 }, { 1, 16 }, { 3, 16 }, { 3, 5 }) }
  end
end
for name, small in next, SMALL do
  local shape <const> = small[2]
  makers[name] = function()
    return { model = lt.models[name](small[1]), axes = { input = { "batch" } },
             samples = of_shapes(lt.randn, { 1, table.unpack(shape) }, { 3, table.unpack(shape) },
               { 6, table.unpack(shape) }) }
  end
end
for name, is_bilinear in next, { unet = false, unet_bilinear = true } do
  makers[name] = function()
    return { model = lt.models.unet { in_channels = 1, width = 2, bilinear = is_bilinear },
             axes = { input = { "batch", [3] = "height", [4] = "width" } },
             samples = of_shapes(lt.randn, { 1, 1, 16, 16 }, { 1, 1, 16, 32 }, { 3, 1, 32, 16 }) }
  end
end

--- A list of {name, model, axes, samples}: `samples` are lists of inputs; the first, of one
--- element, is to be exported, the others have two batch sizes and two lengths or sides.
function models.cases()
  local cases = {}
  for name in next, makers do cases[#cases + 1] = name end
  table.sort(cases)
  for k, name in ipairs(cases) do
    lt.seed(k)
    cases[k] = makers[name]()
    cases[k].name = name
    stir(cases[k].model)
  end
  return cases
end

return models
