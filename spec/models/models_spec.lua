-- spec/models/models_spec.lua: lt.models compute what torchvision's and Hugging Face's do, of the
-- same weights under the same names.
local lt = require "ltrain"
local recorded = require "spec.models.recorded"

local LIMIT <const> = 1e-5

-- The model with the recorded weights, in evaluation, and the record; "unet_bilinear" is of a unet.
local function loaded(name, keys)
  local record = recorded.of(name)
  name = name:gsub("_bilinear$", "")
  local model = lt.models[name](record.options)
  model:load_state_dict(keys and keys(record.state) or record.state)
  return model:eval(), record
end

local function assert_equal(outputs, record)
  for i, y in ipairs(record.outputs) do
    local difference = recorded.difference(outputs[i], y)
    assert(difference < LIMIT, ("output %d differs by %g"):format(i, difference))
  end
end

local function check(name, keys)
  local _ <close> = lt.no_grad()
  local model, record = loaded(name, keys)
  local outputs = table.pack(model(table.unpack(record.inputs)))
  if type(outputs[2]) == "table" then outputs = { outputs[1], table.unpack(outputs[2]) } end
  assert_equal(outputs, record)
end

describe("lt.models", function()
  for _, name in ipairs { "mlp", "resnet18", "resnet34", "resnet50", "vgg11", "vgg13_bn",
    "vgg16_bn", "vgg19", "convnext_tiny", "vit", "vae", "unet", "unet_bilinear" } do
    it(name .. " gives the outputs of PyTorch's", function() check(name) end)
  end

  for _, name in ipairs { "gpt2", "llama" } do
    it(name .. " gives the logits of Hugging Face's, with a cache too", function()
      check(name, lt.models.keys[name])
      local _ <close> = lt.no_grad()
      local model, record = loaded(name)
      local ids, cache, parts = record.inputs[1], model:new_cache(), {}
      for _, range in ipairs { { 1, 4 }, { 5, 1 }, { 6, 3 }, { 9, 1 } } do
        local logits, same = model(ids:narrow(2, range[1], range[2]), cache)
        assert.equal(cache, same)
        parts[#parts + 1] = logits
      end
      assert_equal({ lt.cat(parts, 2) }, record)
    end)
  end

  it("lstm_lm gives the logits and the state of PyTorch's example, in parts too", function()
    check "lstm_lm"
    local _ <close> = lt.no_grad()
    local model, record = loaded "lstm_lm"
    local ids = record.inputs[1]
    local first, state = model(ids:narrow(2, 1, 4))
    local second, last = model(ids:narrow(2, 5, 5), state)
    assert_equal({ lt.cat({ first, second }, 2), last[1], last[2] }, record)
  end)

  it("dcgan gives the images and the logits of PyTorch's example", function()
    local _ <close> = lt.no_grad()
    local model, record = loaded "dcgan"
    local images = model(record.inputs[1])
    assert_equal({ images, model.discriminator(images) }, record)
  end)

  it("bert gives the features of Hugging Face's, of segments and padded sequences", function()
    local _ <close> = lt.no_grad()
    local model, record = loaded("bert", lt.models.keys.bert)
    local ids, types, mask = table.unpack(record.inputs)
    local x, pooled = model(ids, { token_type_ids = types, key_mask = mask })
    assert_equal({ x * mask:unsqueeze(3), pooled }, record)
  end)
end)

describe("the option device of lt.models", function()
  local needed <const> = { mlp = { in_features = 4, hidden = { 3 }, num_classes = 2 },
    lstm_lm = { vocab_size = 9 } }

  -- The model `name` on a device.
  local function made(name, device)
    local options <const> = { device = device }
    for key, value in next, needed[name] or {} do options[key] = value end
    return lt.models[name](options)
  end

  for _, name in pairs(lt.models) do
    if name ~= "keys" then
      it("makes all of " .. name .. " on the meta device, without data", function()
        local model <const> = made(name, "meta")
        for of, tensor in model:named_parameters() do assert.equal("meta", tensor.device, of) end
        for of, tensor in model:named_buffers() do assert.equal("meta", tensor.device, of) end
        assert.is_nil(model.hparams.device)
      end)
    end
  end

  it("keeps the values that a model draws", function()
    for _, name in ipairs { "mlp", "vae", "lstm_lm" } do
      lt.seed(1)
      local here <const> = made(name):state_dict()
      lt.seed(1)
      local later <const> = made(name, "meta"):materialize():state_dict()
      for key, value in pairs(here) do assert.is_true(value:equal(later[key]), key) end
    end
  end)
end)

describe("lt.models.keys", function()
  local x = lt.ones(1)

  it("gpt2 adds the prefix that GPT2Model lacks, and leaves out saved masks", function()
    assert.same({ ["transformer.wte.weight"] = x, ["lm_head.weight"] = x },
      lt.models.keys.gpt2 { ["wte.weight"] = x, ["lm_head.weight"] = x, ["h.0.attn.bias"] = x,
        ["h.0.attn.masked_bias"] = x })
  end)

  it("bert leaves out heads and prefixes, and knows the older names", function()
    assert.same({ ["pooler.dense.bias"] = x, ["embeddings.LayerNorm.weight"] = x,
      ["embeddings.LayerNorm.bias"] = x }, lt.models.keys.bert { ["bert.pooler.dense.bias"] = x,
        ["bert.embeddings.LayerNorm.gamma"] = x, ["bert.embeddings.LayerNorm.beta"] = x,
        ["bert.embeddings.position_ids"] = x, ["cls.predictions.bias"] = x })
  end)

  it("llama adds the prefix that LlamaModel lacks, and leaves out frequencies", function()
    assert.same({ ["model.norm.weight"] = x, ["lm_head.weight"] = x }, lt.models.keys.llama {
      ["norm.weight"] = x, ["lm_head.weight"] = x,
      ["model.layers.0.self_attn.rotary_emb.inv_freq"] = x })
    assert.error_matches(function() lt.models.keys.llama(1) end,
      "models.keys.llama: a state must be a table of tensors: got 1")
  end)
end)
