-- spec/mistakes/text_and_images_spec.lua: tokenizers, transforms, image files.
local mistakes = require "spec.mistakes.mistakes"

mistakes("text or images", {
  { "a text that is no text", [[
local tok = lt.text.BPETokenizer.train({"hello world"}, {vocab_size = 300})
local ids = tok:encode(3) --!]],
    "encode: text must be a string: got 3" },
  { "ids beyond the vocabulary", [[
local tok = lt.text.CharTokenizer.train("abc")
local s = tok:decode({0, 99}) --!]],
    "decode: there is no token with id 99 (the vocabulary has 3)" },
  { "a tensor of floats decoded", [[
local tok = lt.text.CharTokenizer.train("abc")
local s = tok:decode(lt.ones(2)) --!]],
    "decode: ids must be integers: got f32" },
  { "vocab_size too small", [[
local tok = lt.text.BPETokenizer.train({"hello world"}, {vocab_size = 10}) --!]],
    "text.BPETokenizer.train: vocab_size must be at least 256: got 10" },
  { "encode_batch of a text", [[
local tok = lt.text.CharTokenizer.train("abc")
local s = tok:encode_batch("abc") --!]],
    "encode_batch: texts must be a table: got 'abc'" },
  { "a tokenizer that is trained on its options", [[
local t = lt.text.WordTokenizer.train({vocab_size = 200}) --!]],
    "text.WordTokenizer.train: texts must be a list of strings: got a table with 'vocab_size': the "
    .. "texts come first, the options after them" },
  { "Normalize with another number of channels", [[
local t = lt.transforms.Normalize({0.5, 0.5}, {0.5, 0.5})
local y = t(lt.rand(3, 4, 4)) --!]],
    "transforms.Normalize: 2 means for 3 channels" },
  { "Normalize of bytes", [[
local t = lt.transforms.Normalize({0.5}, {0.5})
local y = t(lt.zeros(1, 4, 4):to "u8") --!]],
    "transforms.Normalize: an image is f32: got u8: put ToDtype(\"f32\", {scale = true}) "
    .. "before it" },
  { "a crop larger than the image", [[
local t = lt.transforms.RandomCrop(8)
local y = t(lt.rand(3, 4, 4)) --!]],
    "transforms.RandomCrop: a crop of 8 x 8 of an image of 4 x 4" },
  { "a class in Compose", [[
local t = lt.transforms.Compose({lt.transforms.Normalize}) --!]],
    "transforms.Compose: entry 1 must be a transform or a function: got class Normalize: call "
    .. "it to make an object" },
  { "a matrix as an image", [[
local t = lt.transforms.Resize(4)
local y = t(lt.rand(8, 8)) --!]],
    "transforms: an image is a tensor [C, H, W]: got a tensor [8, 8]" },
  { "an image written with another ending", [[
lt.image.write("picture.bmp", lt.zeros(3, 4, 4):to "u8") --!]],
    "image.write: the name must end in .png, .jpg or .jpeg: got 'picture.bmp'" },
  { "a misspelt transform", [[
local t = lt.transforms.RandomHorizontalFilp() --!]],
    "transforms: there is no 'RandomHorizontalFilp'; did you mean 'RandomHorizontalFlip'?" },
})
