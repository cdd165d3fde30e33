-- spec/models/training_spec.lua: lt.models train, and come back from checkpoints.
local lt = require "ltrain"
local recorded = require "spec.models.recorded"

describe("a model of lt.models", function()
  for _, name in ipairs { "mlp", "vgg11", "vgg13_bn", "convnext_tiny", "vit", "vae", "unet", "gpt2",
    "llama", "bert", "lstm_lm" } do
    it(name .. " has a gradient for each parameter", function()
      lt.seed(1)
      local record = recorded.of(name)
      if name:find "vgg" then record.options.dropout = 0 end
      local model, x, total = lt.models[name](record.options), record.inputs[1], 0
      for _, y in ipairs(name == "vae" and { model:loss(x:abs()) } or { model(x) }) do
        if lt.is_tensor(y) then total = total + (y * y):mean() end
      end
      total:backward()
      for key, parameter in model:named_parameters() do assert(parameter.grad, key) end
    end)
  end

  it("is made again with the options that it was saved with", function()
    local Net = lt.models.vit:extend("Net")
    function Net:training_step(batch)
      local loss = lt.cross_entropy(self(batch[1]), batch[2])
      return loss
    end
    function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    local net = Net { image_size = 8, patch_size = 4, num_layers = 1, num_heads = 1,
      hidden_dim = 4, mlp_dim = 4, num_classes = 2 }
    local path = os.tmpname()
    local trainer = lt.Trainer { max_steps = 1, logger = false, enable_checkpointing = false,
      enable_progress_bar = false, enable_model_summary = false }
    trainer:fit(net, lt.data.DataLoader(lt.data.TensorDataset(lt.randn(2, 3, 8, 8),
      lt.tensor { 0, 1 }), { batch_size = 2 }))
    trainer:save_checkpoint(path)
    local again = Net:load_from_checkpoint(path)
    os.remove(path)
    local x = lt.randn(1, 3, 8, 8)
    assert.is_true(net:eval()(x):eq(again:eval()(x)):all():item())
  end)

  it("says what it needs", function()
    assert.error_matches(function() lt.models.vit { image_size = 30 } end,
      "models.vit: image_size must be a multiple of patch_size: got 30 and 16")
    assert.error_matches(function() lt.models.vit { image_size = 32, num_layers = 1 }(
      lt.ones(1, 3, 16, 16)) end, "models.vit: images must be 32 x 32: got %[1, 3, 16, 16%]")
    assert.error_matches(function() lt.models.resnet81() end, "did you mean 'resnet18'")
    assert.error_matches(function() lt.models.mlp { in_features = 1, num_classes = 1,
      hidden = { 0 } } end, "models.mlp: hidden%[1%] must be at least 1: got 0")
  end)
end)
