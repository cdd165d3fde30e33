-- stdlib/models/init.lua: lt.models, well-known models: classes, each made by Name{options}.
--
-- Besides those of its table each has the option `device`, as layers have: where its parameters and
-- buffers are made.
--
-- Each file is written as a script would be, to be read and copied. Parameters have the names that
-- torchvision and Hugging Face give them, so that their weights fit.

local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.models", "models", {
  "mlp", "convnext_tiny", "vit", "gpt2", "llama", "bert", "vae", "unet", "dcgan", "lstm_lm",
  resnet = { "resnet18", "resnet34", "resnet50" },
  vgg = { "vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn" },
  keys = "ltrain.models.keys",
})
